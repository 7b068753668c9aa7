// Binds systems under test, and the replay of a schedule without a load generator.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "dispatch/gpu_memory.hpp"
#include "loadtest/batching_system.hpp"
#include "loadtest/cpu_copier_and_engine.hpp"
#include "loadtest/crc32.hpp"
#include "loadtest/gpu_copier_and_engine.hpp"
#include "loadtest/latency_dict.hpp"
#include "loadtest/law_system.hpp"
#include "loadtest/null_system.hpp"
#include "loadtest/python_engine.hpp"
#include "loadtest/replay.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lanewise::loadtest {

namespace {

using Free = nb::call_guard<nb::gil_scoped_release>;

constexpr int kCpu = -1;  // in place of a GPU's ordinal

// One device of a system: ordinal (kCpu: the CPU), NUMA node of the library that it reads, engine (None: synthetic).
using Device = std::tuple<int, int, nb::object>;

// A BatchingSystem of Python: ends its threads without the interpreter's lock, which they may be waiting for.
class BoundBatchingSystem : public BatchingSystem {
 public:
  using BatchingSystem::BatchingSystem;
  ~BoundBatchingSystem() override {
    if (PyGILState_Check() == 0) return;
    const nb::gil_scoped_release others_may_run;
    end();
  }
};

// A field of Python's BatchingOptions (lanewise.options.loadtest), by its name there.
template <class Value>
Value field(const nb::object& options, const char* name) {
  return nb::cast<Value>(options.attr(name));
}

// Times are nanoseconds from here on; 146 years at most, so that one can be added to the time that it is now.
std::int64_t to_ns(double seconds) { return static_cast<std::int64_t>(std::min(seconds * 1e9, 0x1p62)); }

using Slots = std::shared_ptr<dispatch::SlotMemory>;

// `slots`: those in memory of the device, a GPU; null where samples are in host memory.
MakeQueueParts parts_of(const nb::object& options, const Device& device, const std::shared_ptr<cuda::Engine>& driver,
                        const dispatch::GpuMemoryPointer& slots) {
  const auto [per_batch, per_query] = field<std::pair<double, double>>(options, "service");
  const ServiceTime service{to_ns(per_batch), per_query * 1e9};
  const auto copy = field<std::string>(options, "copy");
  const auto& [ordinal, node, call] = device;
  const auto engine = call.is_none() ? nullptr : std::make_shared<PythonObject>(call);
  return [=, ordinal = ordinal, node = node](SampleLibrary& library) {
    QueueParts parts;
    const bool on_gpu = ordinal != kCpu;
    if (slots != nullptr) {
      parts.copier = std::make_unique<GpuCopier>(driver, ordinal, library, slots->needs_flush());
    } else if (on_gpu) {
      parts.copier = std::make_unique<GpuCopier>(driver, ordinal, library, node, copy);
    } else {
      parts.copier = std::make_unique<CpuCopier>(library, node);
    }
    if (engine != nullptr) {
      const nb::gil_scoped_acquire python;
      parts.engine = std::make_unique<PythonEngine>(engine->get(), on_gpu);
    } else if (on_gpu) {
      parts.engine = std::make_unique<SyntheticGpuEngine>(driver, ordinal, service);
    } else {
      parts.engine = std::make_unique<SyntheticCpuEngine>(service);
    }
    return parts;
  };
}

// Samples that the system reads itself, or the slots that a node's Frontend fills.
SampleLibrary make_library(std::size_t samples, std::size_t resident, std::size_t bytes, const Fill& fill,
                           const Slots& slots, const std::shared_ptr<cuda::Engine>& driver, int gpu) {
  if (slots == nullptr) {
    return {samples, resident, bytes, gpu == kCpu ? host_memory() : pinned_by(driver, gpu), fill};
  }
  if (slots->size() < samples * SampleLibrary::stride_of(bytes)) {
    throw host::Failure("the slots are smaller than " + std::to_string(samples) + " samples", "please report this");
  }
  const Block block{slots->data(), slots};
  const Allocate there = [block](std::size_t, int) { return block; };
  const bool in_host_memory = std::dynamic_pointer_cast<dispatch::GpuMemory>(slots) == nullptr;
  const bool pin = gpu != kCpu && in_host_memory;
  return SampleLibrary::of_slots(samples, bytes, pin ? pinned_by(driver, gpu, block) : there);
}

void make_system(BoundBatchingSystem* at, const nb::object& options, const std::vector<Device>& devices,
                 std::size_t samples, const nb::object& read_sample, bool checksum, std::size_t traced,
                 const std::string& driver_library, const Slots& slots) {
  const QueueOptions queue_options{.batch = field<std::size_t>(options, "batch"),
                                   .timeout = to_ns(field<double>(options, "timeout")),
                                   .streams = field<std::size_t>(options, "streams"),
                                   .most_waiting = field<std::size_t>(options, "most_waiting"),
                                   .checksum = checksum};
  const bool round_robin = field<std::string>(options, "balance") == "round-robin";
  const auto resident = field<std::size_t>(options, "library");
  const auto sample_bytes = field<std::size_t>(options, "sample_bytes");
  const Fill fill = read_sample.is_none() ? Fill(fill_synthetic) : python_fill(read_sample);
  const auto gpu = std::ranges::find_if(devices, [](const Device& device) { return std::get<0>(device) != kCpu; });
  const int first = gpu != devices.end() ? std::get<0>(*gpu) : kCpu;
  const auto gpu_slots = std::dynamic_pointer_cast<dispatch::GpuMemory>(slots);
  if (gpu_slots != nullptr && (devices.size() != 1 || first == kCpu)) {
    throw host::Failure("slots in the memory of a GPU are for that GPU alone", "name one device, a GPU");
  }
  const nb::gil_scoped_release others_may_run;
  const auto driver = first != kCpu ? std::make_shared<cuda::Engine>(driver_library, "LAZY") : nullptr;
  std::vector<MakeQueueParts> queues;
  {
    const nb::gil_scoped_acquire python;
    for (const Device& device : devices) queues.push_back(parts_of(options, device, driver, gpu_slots));
  }
  SampleLibrary library = make_library(samples, resident, sample_bytes, fill, slots, driver, first);
  new (at) BoundBatchingSystem(queue_options, round_robin ? Balance::kRoundRobin : Balance::kLeastOutstanding,
                               std::make_unique<QueueContext>(std::move(library), traced, queue_options.batch), queues);
}

template <class Value>
nb::object array_of(std::vector<Value> values) {
  auto* const memory = new std::vector<Value>(std::move(values));
  const nb::capsule owner(memory, [](void* of) noexcept { delete static_cast<std::vector<Value>*>(of); });
  return nb::cast(nb::ndarray<nb::numpy, Value>(memory->data(), {memory->size()}, owner));
}

nb::dict statistics_of(BoundBatchingSystem& system) {
  Statistics statistics(system.options().batch);
  {
    const nb::gil_scoped_release others_may_run;
    statistics = system.statistics();
  }
  nb::dict stages;
  for (std::size_t i = 0; i < kStageCount; ++i) stages[kStageNames[i]] = bindings::latency_dict(statistics.stages[i]);
  nb::dict values;
  values["stages"] = stages;
  values["sizes"] = array_of(std::move(statistics.sizes));
  values["bytes"] = statistics.bytes;
  values["answered"] = statistics.stages[kTotal].count();
  values["failed"] = statistics.failed;
  values["stalled"] = system.stalled();
  return values;
}

nb::list trace_of(const BoundBatchingSystem& system) {
  nb::list batches;
  for (TracedBatch& entry : system.trace()) {
    const BatchTimes& at = entry.times;
    batches.append(nb::make_tuple(entry.queue, entry.stream, at.batched, at.copied, at.inferred, at.completed,
                                  array_of(std::move(entry.arrived))));
  }
  return batches;
}

nb::list copies_of(const BoundBatchingSystem& system) {
  nb::list copies;
  for (const auto& queue : system.queues()) {
    nb::dict seconds_by_method;
    for (const auto& [name, seconds] : queue->copier().seconds_by_method()) seconds_by_method[name.c_str()] = seconds;
    copies.append(nb::make_tuple(queue->copier().method(), seconds_by_method));
  }
  return copies;
}

using Times = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::dict replay_schedule(SystemUnderTest& system, const Times& seconds, const Indices& samples,
                         const ReplayOptions& options) {
  ReplayResult result;
  std::vector<std::int64_t> scheduled;
  for (std::size_t i = 0; i < seconds.size(); ++i) scheduled.push_back(to_ns(seconds.data()[i]));
  {
    const nb::gil_scoped_release others_may_run;
    result = replay(system, std::move(scheduled), {samples.data(), samples.size()}, options, [] {
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

nb::dict interface_of(const CudaArray& batch) {
  nb::dict values;
  values["shape"] = nb::make_tuple(batch.samples, batch.bytes);
  values["strides"] = nb::make_tuple(batch.stride, 1);
  values["typestr"] = "|u1";
  values["data"] = nb::make_tuple(batch.address, false);
  values["version"] = 3;
  return values;
}

void make_law(LawSystem* at, double service, bool exponential, std::size_t servers, std::uint64_t seed) {
  if (!(service > 0.0) || servers == 0) {
    throw host::Failure("a server needs a service time above 0 s, and there must be one server or more",
                        "such as 1 ms and 1 server");
  }
  new (at) LawSystem(service, exponential, servers, seed);
}

}  // namespace
}  // namespace lanewise::loadtest

namespace lanewise::bindings {

void bind_systems(nb::module_& m) {
  using namespace loadtest;
  nb::class_<CudaArray>(m, "CudaArray", "A batch in a GPU's memory, valid during the engine's call.")
      .def_prop_ro("__cuda_array_interface__", interface_of);
  nb::class_<SystemUnderTest>(m, "SystemUnderTest", "What a load generator sends queries to.")
      .def_prop_ro("name", &SystemUnderTest::name)
      .def(
          "load", [](SystemUnderTest& system, const std::vector<std::uint64_t>& samples) { system.load(samples); },
          "samples"_a, Free())
      .def(
          "unload", [](SystemUnderTest& system, const std::vector<std::uint64_t>& samples) { system.unload(samples); },
          "samples"_a, Free());
  nb::class_<BoundBatchingSystem, SystemUnderTest>(m, "BatchingSystem",
                                                   "Queues, batches, copies, an engine, answers: a queue a device.")
      .def("__init__", make_system, "options"_a, "devices"_a, "samples"_a, "fill"_a.none(), "checksum"_a, "trace"_a,
           "driver"_a, "slots"_a.none() = nb::none())
      .def("limit_batch", &BoundBatchingSystem::limit_batch, "batch"_a)
      .def("statistics", statistics_of)
      .def("trace", trace_of)
      .def_prop_ro("copies", copies_of);
  nb::class_<NullSystem, SystemUnderTest>(m, "NullSystem", "Answers at once, or from a thread in batches.")
      .def(nb::init<bool>(), "by_thread"_a = false);
  nb::class_<LawSystem, SystemUnderTest>(m, "LawSystem", "One queue before servers of constant or exponential service.")
      .def("__init__", make_law, "service"_a, "exponential"_a = false, "servers"_a = 1, "seed"_a = 1);
  m.def(
      "replay",
      [](SystemUnderTest& system, const Times& seconds, const Indices& samples, bool coalesce, bool flush, bool keep,
         double limit) { return replay_schedule(system, seconds, samples, {coalesce, flush, keep, limit}); },
      "system"_a, "seconds"_a, "samples"_a, "coalesce"_a = false, "flush"_a = true, "keep"_a = false, "limit"_a = 60.0);
  m.def(
      "synthetic_sample",
      [](std::uint64_t sample, std::size_t bytes) {
        std::string data(bytes, '\0');
        fill_synthetic(sample, std::as_writable_bytes(std::span(data)));
        return nb::bytes(data.data(), data.size());
      },
      "sample"_a, "bytes"_a);
}

}  // namespace lanewise::bindings
