// Binds the system under test, and what drives it without a load generator.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "loadtest/batching.hpp"
#include "loadtest/callback.hpp"
#include "loadtest/cpu_device.hpp"
#include "loadtest/crc32.hpp"
#include "loadtest/drive.hpp"
#include "loadtest/gpu_device.hpp"
#include "loadtest/law_system.hpp"
#include "loadtest/null_system.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lanewise::bindings {

namespace {

using namespace loadtest;
using Free = nb::call_guard<nb::gil_scoped_release>;

constexpr int kCpu = -1;  // in place of a GPU's ordinal

// nanobind tells types apart by name, also those of nameless namespaces.
struct DeviceSetup {
  int ordinal = kCpu;
  int node = host::kAnyNode;  // of the library that it reads
  nb::object engine;          // None: synthetic
};

// What a system is made of, as plain values.
struct Setup {
  std::string name = "lanewise";
  std::vector<DeviceSetup> devices;
  std::size_t batch = 64;
  double timeout = 0;
  std::size_t streams = 2;
  std::size_t sample_bytes = 150528;
  std::size_t samples = 1024;
  std::size_t room = 1024;
  std::string copy = "auto";
  double service_batch = 0;
  double service_query = 0;
  double spin = 20e-6;
  std::size_t ring = std::size_t{1} << 18;
  std::size_t trace = 0;
  bool checksum = false;
  bool round_robin = false;
  std::string driver = "libcuda.so.1";
  nb::object fill = nb::none();
};

// Ends the workers without the interpreter's lock, which they may be waiting for.
class Bound : public BatchingSystem {
 public:
  using BatchingSystem::BatchingSystem;
  ~Bound() override {
    if (PyGILState_Check() == 0) return;
    const nb::gil_scoped_release others_may_run;
    end();
  }
};

Allocate host_memory() {
  return [](std::size_t bytes, int node) {
    const auto memory = std::make_shared<host::Memory>(bytes, node);
    return Block{memory->data(), memory};
  };
}

MakeParts parts_of(const Setup& setup, const DeviceSetup& device, const std::shared_ptr<cuda::Engine>& driver) {
  const Service service{to_ns(setup.service_batch), setup.service_query * 1e9};
  const bool on_gpu = device.ordinal != kCpu;
  const auto engine = device.engine.is_none() ? nullptr : std::make_shared<Held>(device.engine);
  return [=, ordinal = device.ordinal, node = device.node, copy = setup.copy, spin = to_ns(setup.spin)](Library& library) {
    Parts parts;
    if (on_gpu) {
      parts.mover = std::make_unique<GpuMover>(driver, ordinal, library, node, copy);
    } else {
      parts.mover = std::make_unique<CpuMover>(library, node);
    }
    if (engine != nullptr) {
      const nb::gil_scoped_acquire python;
      parts.engine = std::make_unique<Callback>(engine->get(), on_gpu);
    } else if (on_gpu) {
      parts.engine = std::make_unique<GpuHold>(driver, ordinal, service);
    } else {
      parts.engine = std::make_unique<CpuHold>(service, spin);
    }
    return parts;
  };
}

void make_system(Bound* at, const Setup& setup) {
  const auto gpu = std::ranges::find_if(setup.devices, [](const DeviceSetup& entry) { return entry.ordinal != kCpu; });
  const bool any_gpu = gpu != setup.devices.end();
  const Fill fill = setup.fill.is_none() ? Fill(fill_synthetic) : python_fill(setup.fill);
  const Batching options{.batch = setup.batch,
                     .timeout = to_ns(setup.timeout),
                     .streams = setup.streams,
                     .ring = setup.ring,
                     .checksum = setup.checksum};
  const int first = any_gpu ? gpu->ordinal : kCpu;
  const nb::gil_scoped_release others_may_run;
  const auto driver = any_gpu ? std::make_shared<cuda::Engine>(setup.driver) : nullptr;
  std::vector<MakeParts> queues;
  {
    const nb::gil_scoped_acquire python;
    for (const DeviceSetup& device : setup.devices) queues.push_back(parts_of(setup, device, driver));
  }
  Library library(setup.samples, setup.room, setup.sample_bytes, any_gpu ? pinned_by(driver, first) : host_memory(), fill);
  new (at) Bound(setup.name, options, setup.round_robin ? Balance::kRoundRobin : Balance::kLeastOutstanding,
                 std::make_shared<Shared>(std::move(library), setup.trace, setup.batch), queues);
}

template <class Value>
nb::object array_of(std::vector<Value> values) {
  auto* const memory = new std::vector<Value>(std::move(values));
  const nb::capsule owner(memory, [](void* of) noexcept { delete static_cast<std::vector<Value>*>(of); });
  return nb::cast(nb::ndarray<nb::numpy, Value>(memory->data(), {memory->size()}, owner));
}

nb::dict stages_of(const Tally& tally) {
  nb::dict stages;
  for (std::size_t i = 0; i < kStagesOf; ++i) {
    const Latencies& of = tally.stages[i];
    nb::dict values;
    values["p50"] = of.histogram().percentile(0.5);
    values["p90"] = of.histogram().percentile(0.9);
    values["p99"] = of.histogram().percentile(0.99);
    values["p99.9"] = of.histogram().percentile(0.999);
    values["mean"] = of.mean();
    values["max"] = of.histogram().largest();
    stages[kStageNames[i]] = values;
  }
  return stages;
}

nb::dict tally_of(Bound& system) {
  Tally tally(system.options().batch);
  {
    const nb::gil_scoped_release others_may_run;
    tally = system.tally();
  }
  nb::dict values;
  values["stages"] = stages_of(tally);
  values["sizes"] = array_of(std::move(tally.sizes));
  values["bytes"] = tally.bytes;
  values["answered"] = tally.stages[kTotal].count();
  values["failed"] = tally.failed;
  values["stalled"] = system.stalled();
  return values;
}

nb::list trace_of(const Bound& system) {
  nb::list batches;
  for (TracedBatch& entry : system.trace()) {
    const Stamps& at = entry.stamps;
    batches.append(nb::make_tuple(entry.queue, entry.stream, at.batched, at.copied, at.inferred, at.completed,
                                  array_of(std::move(entry.arrived))));
  }
  return batches;
}

nb::list copies_of(const Bound& system) {
  nb::list copies;
  for (const auto& queue : system.queues()) {
    nb::dict seconds_by_method;
    for (const auto& [name, seconds] : queue->mover().seconds_by_method()) seconds_by_method[name.c_str()] = seconds;
    copies.append(nb::make_tuple(queue->mover().method(), seconds_by_method));
  }
  return copies;
}

using Times = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::dict drive_system(System& system, const Times& seconds, const Indices& samples, const Drive& options) {
  Driven result;
  {
    const nb::gil_scoped_release others_may_run;
    result = drive(system, {seconds.data(), seconds.size()}, {samples.data(), samples.size()}, options, [] {
      const nb::gil_scoped_acquire python;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    });
  }
  nb::dict values;
  values["scheduled"] = array_of(std::move(result.scheduled));
  values["issued"] = array_of(std::move(result.issued));
  values["answered"] = array_of(std::move(result.answered));
  values["answers"] = array_of(std::move(result.answers));
  nb::list data;
  for (const std::string& entry : result.data) data.append(nb::bytes(entry.data(), entry.size()));
  values["data"] = data;
  values["failure"] = nb::make_tuple(result.failure, result.hint);
  return values;
}

nb::dict interface_of(const DeviceBatch& batch) {
  nb::dict values;
  values["shape"] = nb::make_tuple(batch.samples, batch.bytes);
  values["strides"] = nb::make_tuple(batch.stride, 1);
  values["typestr"] = "|u1";
  values["data"] = nb::make_tuple(batch.address, false);
  values["version"] = 3;
  return values;
}

void bind_setup(nb::module_& m) {
  nb::class_<DeviceSetup>(m, "SystemDevice", "One device of a system under test: a GPU's ordinal, or -1 for the CPU.")
      .def("__init__", [](DeviceSetup* at, int ordinal, int node, nb::object engine) {
        new (at) DeviceSetup{ordinal, node, std::move(engine)};
      }, "ordinal"_a = kCpu, "node"_a = host::kAnyNode, "engine"_a.none() = nb::none());
  nb::class_<Setup>(m, "SystemSetup", "What a system under test is made of.")
      .def(nb::init<>())
      .def_rw("name", &Setup::name)
      .def_rw("devices", &Setup::devices)
      .def_rw("batch", &Setup::batch)
      .def_rw("timeout", &Setup::timeout)
      .def_rw("streams", &Setup::streams)
      .def_rw("sample_bytes", &Setup::sample_bytes)
      .def_rw("samples", &Setup::samples)
      .def_rw("room", &Setup::room)
      .def_rw("copy", &Setup::copy)
      .def_rw("service_batch", &Setup::service_batch)
      .def_rw("service_query", &Setup::service_query)
      .def_rw("spin", &Setup::spin)
      .def_rw("ring", &Setup::ring)
      .def_rw("trace", &Setup::trace)
      .def_rw("checksum", &Setup::checksum)
      .def_rw("round_robin", &Setup::round_robin)
      .def_rw("driver", &Setup::driver)
      .def_rw("fill", &Setup::fill, nb::arg().none());
  nb::class_<DeviceBatch>(m, "DeviceBatch", "A batch in a GPU's memory, valid during the engine's call.")
      .def_prop_ro("__cuda_array_interface__", interface_of);
}

void make_law(LawSystem* at, double service, bool exponential, std::size_t servers, std::uint64_t seed) {
  if (!(service > 0.0) || servers == 0) {
    throw host::Failure("a server needs a service time above 0 s, and there must be one server or more",
                        "such as 1 ms and 1 server");
  }
  new (at) LawSystem(service, exponential, servers, seed);
}

}  // namespace

void bind_systems(nb::module_& m) {
  bind_setup(m);
  nb::class_<System>(m, "LoadSystem", "What a load generator sends queries to.")
      .def_prop_ro("name", &System::name)
      .def("load", [](System& system, const std::vector<std::uint64_t>& samples) { system.load(samples); },
           "samples"_a, Free())
      .def("unload", [](System& system, const std::vector<std::uint64_t>& samples) { system.unload(samples); },
           "samples"_a, Free());
  nb::class_<Bound, System>(m, "BatchingSystem", "Queues, batches, copies, an engine, answers: a queue a device.")
      .def("__init__", make_system, "setup"_a)
      .def("take_at_most", &Bound::take_at_most, "batch"_a)
      .def("tally", tally_of)
      .def("trace", trace_of)
      .def_prop_ro("copies", copies_of);
  nb::class_<NullSystem, System>(m, "NullSystem", "Answers at once, or from a thread in batches.")
      .def(nb::init<bool>(), "by_thread"_a = false);
  nb::class_<LawSystem, System>(m, "LawSystem", "One queue before servers of constant or exponential service.")
      .def("__init__", make_law, "service"_a, "exponential"_a = false, "servers"_a = 1, "seed"_a = 1);
  m.def("drive",
        [](System& system, const Times& seconds, const Indices& samples, bool coalesce, bool flush, bool keep,
           double limit) { return drive_system(system, seconds, samples, {coalesce, flush, keep, limit}); },
        "system"_a, "seconds"_a, "samples"_a, "coalesce"_a = false, "flush"_a = true, "keep"_a = false,
        "limit"_a = 60.0);
  m.def("synthetic_sample", [](std::uint64_t sample, std::size_t bytes) {
    std::string data(bytes, '\0');
    fill_synthetic(sample, std::as_writable_bytes(std::span(data)));
    return nb::bytes(data.data(), data.size());
  }, "sample"_a, "bytes"_a);
}

}  // namespace lanewise::bindings
