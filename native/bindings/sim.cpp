// Binds native/sim. Python checks nothing: what is wrong comes back as BadInput(cause, hint).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "sim/flowsim.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lanewise::bindings {
namespace {

using sim::FlowEngine;
using sim::Network;

template <typename T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Uses = std::vector<std::pair<std::int32_t, double>>;
using Rates = std::vector<std::pair<double, std::vector<double>>>;

template <typename T>
std::span<const T> view(const Column<T>& column) {
  return {column.data(), column.size()};
}

std::shared_ptr<Network> make_network(std::vector<double> capacities, const std::vector<Uses>& uses,
                                      const std::vector<double>& weights, const std::vector<double>& caps,
                                      const std::vector<std::int32_t>& senders, double turn, double apart) {
  if (weights.size() != uses.size() || caps.size() != uses.size() ||
      (!senders.empty() && senders.size() != uses.size())) {
    throw sim::BadInput("uses, weights, caps and senders of the flow classes differ in number",
                        "give one of each for each class");
  }
  std::vector<sim::FlowClass> classes(uses.size());
  for (std::size_t k = 0; k < uses.size(); ++k) {
    for (const auto& [resource, coefficient] : uses[k]) classes[k].uses.push_back({resource, coefficient});
    classes[k].weight = weights[k];
    classes[k].cap = caps[k];
    if (!senders.empty()) classes[k].sender = senders[k];
  }
  return std::make_shared<Network>(std::move(capacities), std::move(classes), sim::TurnRule{turn, apart});
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> to_numpy(std::vector<double>&& values) {
  auto* kept = new std::vector<double>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return {kept->data(), {kept->size()}, owner};
}

Rates to_pairs(const std::vector<sim::RateChange>& changes) {
  Rates out;
  out.reserve(changes.size());
  for (const auto& change : changes) out.emplace_back(change.time, change.rates);
  return out;
}

nb::tuple run(std::shared_ptr<Network> network, const Column<std::int32_t>& classes, const Column<double>& sizes,
              const Column<double>& starts, std::size_t keep_rates, const Column<std::int32_t>& queues,
              const Column<std::int32_t>& waiting, const Column<std::int32_t>& awaited) {
  sim::Outcome out;
  {
    nb::gil_scoped_release others_may_run;
    out = sim::run_flows(std::move(network),
                         {view(classes), view(sizes), view(starts), view(queues), view(waiting), view(awaited)},
                         keep_rates);
  }
  return nb::make_tuple(to_numpy(std::move(out.finishes)), to_pairs(out.rates), out.rates_complete);
}

}  // namespace

void bind_sim(nb::module_& m) {
  nb::exception<sim::BadInput> bad_input(m, "BadInput", PyExc_ValueError);
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* type) {
        try {
          std::rethrow_exception(thrown);
        } catch (const sim::BadInput& error) {
          PyErr_SetObject(static_cast<PyObject*>(type), nb::make_tuple(error.what(), error.hint()).ptr());
        }
      },
      bad_input.ptr());

  nb::class_<Network>(m, "Network", "Checked resources and flow classes; BadInput if they have no meaning.")
      .def(nb::new_(&make_network), "capacities"_a, "uses"_a, "weights"_a, "caps"_a,
           "senders"_a = std::vector<std::int32_t>(), "turn"_a = 1.0, "apart"_a = 0.0);

  m.def(
      "share",
      [](const Network& network, const std::vector<double>& counts) {
        sim::Shares out = sim::share(network, counts);
        return std::make_tuple(std::move(out.rates), std::move(out.limits), std::move(out.use));
      },
      "network"_a, "counts"_a,
      "Weighted max-min: rates, limits (resource, -1 own cap, -2 no flow) and use of resources.");
  m.def("run_flows", &run, "network"_a, "flow_class"_a, "sizes"_a, "starts"_a, "keep_rates"_a, "queues"_a, "waiting"_a,
        "awaited"_a, "Finish times, kept changes of rates, and whether all changes were kept.");

  nb::class_<FlowEngine>(m, "FlowEngine", "Steps through transfers; the same that C++ code embeds.")
      .def(
          "__init__",
          [](FlowEngine* self, std::shared_ptr<Network> network) { new (self) FlowEngine(std::move(network)); },
          "network"_a)
      .def_prop_ro("now", &FlowEngine::now)
      .def_prop_ro("active", &FlowEngine::active)
      .def("add", &FlowEngine::add, "flow_class"_a, "size"_a, "id"_a)
      .def("next_event_time", &FlowEngine::next_event_time)
      .def("advance",
           [](FlowEngine& self) {
             const auto ended = self.advance();
             return std::vector<std::int64_t>(ended.begin(), ended.end());
           })
      .def("advance_to", &FlowEngine::advance_to, "time"_a)
      .def("rate", &FlowEngine::rate, "flow_class"_a)
      .def("limit", &FlowEngine::limit, "flow_class"_a)
      .def("moved", &FlowEngine::moved, "flow_class"_a);
}

}  // namespace lanewise::bindings
