// Binds native/serve: the scenario as plain records, and a run that Ctrl-C ends.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "serve/simulator.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lanewise::serve {
namespace {

// Ctrl-C is looked for this often; a turn takes about a millisecond.
constexpr int kTurnsPerLook = 32;

Outcome simulate(std::shared_ptr<const sim::Network> network, const Scenario& scenario) {
  Simulator simulator(std::move(network), scenario);
  int turns = 0;
  const auto interrupted = [&turns] {
    if (++turns % kTurnsPerLook != 0) return false;
    nb::gil_scoped_acquire python;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return false;
  };
  nb::gil_scoped_release others_may_run;
  return simulator.run(interrupted);
}

void bind_scenario(nb::module_& m) {
  nb::enum_<Arrivals>(m, "Arrivals")
      .value("POISSON", Arrivals::kPoisson)
      .value("ONE_BY_ONE", Arrivals::kOneByOne)
      .value("AT_ONCE", Arrivals::kAtOnce);
  nb::enum_<Dispatch>(m, "Dispatch")
      .value("LEAST", Dispatch::kLeastOutstanding)
      .value("ROUND_ROBIN", Dispatch::kRoundRobin)
      .value("RANDOM", Dispatch::kRandom);
  nb::enum_<Waiting>(m, "Waiting").value("OLDEST", Waiting::kOldest).value("WORKER", Waiting::kWorker);
  nb::class_<Leg>(m, "Leg").def(
      "__init__",
      [](Leg* self, std::int32_t flow_class, double bytes, double setup, double latency, double alone,
         std::int32_t slots, std::int32_t most,
         double setup_each) { new (self) Leg{flow_class, bytes, setup, setup_each, latency, alone, slots, most}; },
      "flow_class"_a = kNoFlow, "bytes"_a = 0.0, "setup"_a = 0.0, "latency"_a = 0.0,
      "alone"_a = std::numeric_limits<double>::infinity(), "slots"_a = 1, "most"_a = 1, "setup_each"_a = 0.0);
  nb::class_<Worker>(m, "Worker")
      .def(
          "__init__",
          [](Worker* self, std::int32_t pool, std::int32_t gpu, std::int32_t buffers, const Leg& copy, const Leg& back,
             std::vector<double> times, std::int32_t streams, std::vector<double> shares) {
            new (self) Worker{pool, gpu, buffers, copy, back, std::move(times), streams, std::move(shares)};
          },
          "pool"_a, "gpu"_a, "buffers"_a, "copy"_a, "back"_a, "times"_a, "streams"_a = 1,
          "shares"_a = std::vector<double>());
  nb::class_<Pool>(m, "Pool").def(
      "__init__", [](Pool* self, std::int32_t service, const Leg& arrive) { new (self) Pool{service, arrive}; },
      "service"_a, "arrive"_a);
  nb::class_<Service>(m, "Service")
      .def(nb::init<>())
      .def_rw("arrivals", &Service::arrivals)
      .def_rw("rate", &Service::rate)
      .def_rw("samples", &Service::samples)
      .def_rw("total", &Service::total)
      .def_rw("bound", &Service::bound)
      .def_rw("dispatch", &Service::dispatch)
      .def_rw("batch", &Service::batch)
      .def_rw("timeout", &Service::timeout)
      .def_rw("waiting", &Service::waiting)
      .def_rw("in_turn", &Service::in_turn)
      .def_rw("variation", &Service::variation)
      .def_rw("sample_variation", &Service::sample_variation)
      .def_rw("late_limit", &Service::late_limit);
  nb::class_<Background>(m, "Background")
      .def(
          "__init__",
          [](Background* self, std::int32_t flow_class, double bytes, double start, double period) {
            new (self) Background{flow_class, bytes, start, period};
          },
          "flow_class"_a, "bytes"_a, "start"_a = 0.0, "period"_a = 0.0);
  nb::class_<Scenario>(m, "Scenario")
      .def(nb::init<>())
      .def_rw("services", &Scenario::services)
      .def_rw("pools", &Scenario::pools)
      .def_rw("workers", &Scenario::workers)
      .def_rw("background", &Scenario::background)
      .def_rw("gpus", &Scenario::gpus)
      .def_rw("duration", &Scenario::duration)
      .def_rw("skip", &Scenario::skip)
      .def_rw("steps", &Scenario::steps)
      .def_rw("trace", &Scenario::trace)
      .def_rw("seed", &Scenario::seed);
}

void bind_outcome(nb::module_& m) {
  nb::class_<ServiceOutcome>(m, "ServiceOutcome")
      .def_ro("issued", &ServiceOutcome::issued)
      .def_ro("answered", &ServiceOutcome::answered)
      .def_ro("counted", &ServiceOutcome::counted)
      .def_ro("late", &ServiceOutcome::late)
      .def_ro("batches", &ServiceOutcome::batches)
      .def_ro("samples", &ServiceOutcome::samples)
      .def_ro("last_answer", &ServiceOutcome::last_answer)
      .def_ro("sum", &ServiceOutcome::sum)
      .def(
          "percentile", [](const ServiceOutcome& self, double share) { return self.latency.percentile(share); },
          "share"_a, "The latency in s below which that share (0 .. 1) of the counted queries lie.")
      .def(
          "stages", [](const ServiceOutcome& self, double least) { return self.latency.stages(least); }, "least"_a,
          "Mean seconds in each stage of queries that took `least` s or more.");
  nb::class_<TracedBatch>(m, "TracedBatch")
      .def_ro("worker", &TracedBatch::worker)
      .def_ro("formed", &TracedBatch::formed)
      .def_ro("copied", &TracedBatch::copied)
      .def_ro("started", &TracedBatch::started)
      .def_ro("served", &TracedBatch::served)
      .def_ro("done", &TracedBatch::done)
      .def_ro("scheduled", &TracedBatch::scheduled)
      .def_ro("landed", &TracedBatch::landed);
  nb::class_<Outcome>(m, "Outcome")
      .def_ro("services", &Outcome::services)
      .def_ro("moved", &Outcome::moved)
      .def_ro("steps", &Outcome::steps)
      .def_ro("busy", &Outcome::busy)
      .def_ro("gpu_steps", &Outcome::gpu_steps)
      .def_ro("trace", &Outcome::trace)
      .def_ro("end", &Outcome::end)
      .def_ro("most_in_flight", &Outcome::most_in_flight)
      .def_ro("ended_early", &Outcome::ended_early);
}

}  // namespace
}  // namespace lanewise::serve

namespace lanewise::bindings {

void bind_serve(nb::module_& m) {
  using namespace serve;
  bind_scenario(m);
  bind_outcome(m);
  m.def("simulate", &simulate, "network"_a, "scenario"_a,
        "Inference services under load; BadInput for a wrong scenario.");
}

}  // namespace lanewise::bindings
