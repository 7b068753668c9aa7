// Binds both sides of the query dispatch library. Python connects sockets and passes shared memory; no query and no
// answer meets Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "dispatch/checksum_system.hpp"
#include "dispatch/gpu_memory.hpp"
#include "dispatch/network_system.hpp"
#include "dispatch/node.hpp"
#include "dispatch/shm_channel.hpp"
#include "dispatch/tcp_channel.hpp"
#include "dispatch/verbs_channel.hpp"
#include "host/failure.hpp"
#include "host/memory.hpp"
#include "loadtest/cpu_copier_and_engine.hpp"
#include "loadtest/latency_dict.hpp"
#include "loadtest/python_engine.hpp"
#include "network/verbs_address_dict.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lanewise::dispatch {

namespace {

using Free = nb::call_guard<nb::gil_scoped_release>;
using Cpus = std::vector<int>;

// What both sides of a connection agree on (lanewise.dispatch.messages.ConnectionShape), by its names there.
struct ConnectionShape {
  std::uint32_t slots;
  std::size_t sample_bytes, answer_bytes;
};

ConnectionShape shape_of(const nb::object& shape) {
  return {nb::cast<std::uint32_t>(shape.attr("slots")), nb::cast<std::size_t>(shape.attr("sample_bytes")),
          nb::cast<std::size_t>(shape.attr("answer_bytes"))};
}

std::unique_ptr<Channel> shm_channel(ShmChannel::Side side, const ConnectionShape& shape, SharedMemoryPointer memory,
                                     SharedMemoryPointer samples, std::size_t first_slot) {
  const std::size_t stride = loadtest::SampleLibrary::stride_of(shape.sample_bytes);
  const ShmLayout layout{shape.slots, shape.sample_bytes, shape.answer_bytes};
  return std::make_unique<ShmChannel>(side, layout, std::move(memory), std::move(samples), first_slot * stride, stride);
}

Slots sample_slots(const ConnectionShape& shape, std::byte* data) {
  return {.data = data,
          .count = shape.slots,
          .bytes = shape.sample_bytes,
          .stride = loadtest::SampleLibrary::stride_of(shape.sample_bytes)};
}

Slots answer_slots(const ConnectionShape& shape, std::byte* data) {
  return {
      .data = data, .count = shape.slots, .bytes = shape.answer_bytes, .stride = shape.answer_bytes, .has_text = true};
}

// New slots of a Frontend, with what keeps them.
struct AnswerMemory {
  Slots slots;
  std::shared_ptr<const void> keeper;
};

AnswerMemory answer_memory(const ConnectionShape& shape) {
  const auto memory = std::make_shared<std::vector<std::byte>>(shape.slots * shape.answer_bytes + kTextBytes);
  return {answer_slots(shape, memory->data()), memory};
}

// A connection's slots in the memory of a node.
Slots slots_of_node(const ConnectionShape& shape, const SlotMemory& samples, std::size_t first_slot) {
  const std::size_t stride = loadtest::SampleLibrary::stride_of(shape.sample_bytes);
  if ((first_slot + shape.slots) * stride > samples.size()) {
    throw host::Failure("a connection has more slots than memory", "please report this");
  }
  return sample_slots(shape, samples.data() + first_slot * stride);
}

std::unique_ptr<Channel> tcp_at_frontend(int fd, const ConnectionShape& shape, bool zero_copy) {
  const AnswerMemory answers = answer_memory(shape);
  return std::make_unique<TcpChannel>(fd, answers.slots, sample_slots(shape, nullptr), answers.keeper, zero_copy);
}

std::unique_ptr<Channel> tcp_at_node(int fd, const ConnectionShape& shape, const SharedMemoryPointer& samples,
                                     std::size_t first_slot) {
  return std::make_unique<TcpChannel>(fd, slots_of_node(shape, *samples, first_slot), answer_slots(shape, nullptr),
                                      samples, false);
}

// One side's queue pair, until its Frontend or its session takes it.
class VerbsEndpoint {
 public:
  VerbsEndpoint(const ConnectionShape& shape, VerbsChannelSetup setup)
      : shape_(shape), channel_(make_verbs_channel(std::move(setup))) {}

  nb::dict address() const {
    const VerbsChannelAddress address = channel().address();
    nb::dict out = network::to_dict(address.queue_pair);
    out["ring"] = address.ring;
    out["ring_key"] = address.ring_key;
    return out;
  }
  void connect(const nb::dict& peer) {
    VerbsChannelAddress address{.queue_pair = network::to_address(peer)};
    network::read_value(peer, "ring", address.ring);
    network::read_value(peer, "ring_key", address.ring_key);
    channel().connect(address);
    connected_ = true;
  }
  std::unique_ptr<Channel> take() {
    channel();
    if (!connected_) throw host::Failure("a queue pair is not connected", "call connect(address of the other side)");
    return std::move(channel_);
  }
  const ConnectionShape& shape() const { return shape_; }

 private:
  VerbsChannel& channel() const {
    if (!channel_) throw host::Failure("a queue pair has its connection already", "make one for each");
    return *channel_;
  }

  ConnectionShape shape_;
  std::unique_ptr<VerbsChannel> channel_;
  bool connected_ = false;
};

void bind_verbs_endpoint(nb::module_& m) {
  nb::class_<VerbsEndpoint>(m, "VerbsEndpoint", "One side's RC queue pair, until it is added to a Frontend or a node.")
      .def_static(
          "of_frontend",
          [](const nb::object& shape, std::string device, int port, int gid_index, int node) {
            const ConnectionShape agreed = shape_of(shape);
            const AnswerMemory answers = answer_memory(agreed);
            return new VerbsEndpoint(agreed, {.port = {std::move(device), port, gid_index},
                                              .node = node,
                                              .mine = answers.slots,
                                              .peers = sample_slots(agreed, nullptr),
                                              .keeper = answers.keeper});
          },
          "shape"_a, "device"_a, "port"_a = 1, "gid_index"_a = 0, "node"_a = -1)
      .def_static(
          "of_node",
          [](const nb::object& shape, const std::shared_ptr<SlotMemory>& samples, std::size_t first_slot,
             std::string device, int port, int gid_index, int node) {
            const ConnectionShape agreed = shape_of(shape);
            VerbsChannelSetup setup{.port = {std::move(device), port, gid_index},
                                    .node = node,
                                    .mine = slots_of_node(agreed, *samples, first_slot),
                                    .peers = answer_slots(agreed, nullptr),
                                    .keeper = samples};
            if (const auto gpu = std::dynamic_pointer_cast<GpuMemory>(samples)) {
              setup.dma_buf = gpu->dma_buf();
              setup.dma_buf_offset = static_cast<std::uint64_t>(setup.mine.data - gpu->data());
            }
            return new VerbsEndpoint(agreed, std::move(setup));
          },
          "shape"_a, "samples"_a, "first_slot"_a, "device"_a, "port"_a = 1, "gid_index"_a = 0, "node"_a = -1)
      .def("address", &VerbsEndpoint::address)
      .def("connect", &VerbsEndpoint::connect, "peer"_a);
}

// Ends its threads without the interpreter's lock, which an engine may be waiting for.
class BoundNodeSession : public NodeSession {
 public:
  using NodeSession::NodeSession;
  ~BoundNodeSession() {
    if (PyGILState_Check() == 0) return;
    const nb::gil_scoped_release others_may_run;
    close();
  }
};

nb::list counters_of(const NetworkSystem& system) {
  nb::list all;
  for (const ConnectionCounters& one : system.counters()) {
    nb::dict values;
    values["number"] = one.number;
    values["node"] = one.node;
    values["answered"] = one.answered;
    values["posted"] = one.posted;
    values["completed"] = one.completed;
    values["bytes_out"] = one.bytes_out;
    values["bytes_in"] = one.bytes_in;
    values["doorbells"] = one.doorbells;
    values["wakeups"] = one.wakeups;
    values["outstanding"] = one.outstanding;
    values["lost"] = one.lost;
    values["stale"] = one.stale;
    values["reason"] = one.reason;
    all.append(values);
  }
  return all;
}

nb::dict latencies_of(const NetworkSystem& system, std::optional<std::size_t> node) {
  const FrontendLatencies latencies = system.latencies(node);
  nb::dict stages;
  for (std::size_t i = 0; i < kFrontendStages; ++i) {
    stages[kFrontendStageNames[i]] = latencies[i].count() == 0 ? nb::dict() : bindings::latency_dict(latencies[i]);
  }
  return stages;
}

nb::list trace_of(const NetworkSystem& system) {
  nb::list queries;
  for (const QueryTimes& times : system.trace()) {
    queries.append(nb::make_tuple(times.connection, times.issued, times.posted, times.answered, times.at_node));
  }
  return queries;
}

void bind_frontend(nb::module_& m) {
  nb::class_<NetworkSystem, loadtest::SystemUnderTest>(m, "NetworkSystem", "The Frontend: sends every query to a node.")
      .def(
          "__init__",
          [](NetworkSystem* at, std::size_t samples, std::size_t resident, std::size_t sample_bytes,
             const nb::object& fill, std::size_t trace) {
            const loadtest::Fill read =
                fill.is_none() ? loadtest::Fill(loadtest::fill_synthetic) : loadtest::python_fill(fill);
            new (at) NetworkSystem(
                loadtest::SampleLibrary(samples, resident, sample_bytes, loadtest::host_memory(), read), trace);
          },
          "samples"_a, "resident"_a, "sample_bytes"_a, "fill"_a.none() = nb::none(), "trace"_a = 0)
      .def(
          "add_shm",
          [](NetworkSystem& system, std::size_t node, const nb::object& shape, SharedMemoryPointer memory,
             SharedMemoryPointer samples, std::size_t first_slot, Cpus cpus) {
            auto channel = shm_channel(ShmChannel::Side::kFrontend, shape_of(shape), std::move(memory),
                                       std::move(samples), first_slot);
            system.add(node, std::move(channel), host::kAnyNode, std::move(cpus));
          },
          "node"_a, "shape"_a, "memory"_a, "samples"_a, "first_slot"_a, "cpus"_a = Cpus())
      .def(
          "add_tcp",
          [](NetworkSystem& system, std::size_t node, const nb::object& shape, int fd, bool zero_copy, Cpus cpus) {
            system.add(node, tcp_at_frontend(fd, shape_of(shape), zero_copy), host::kAnyNode, std::move(cpus));
          },
          "node"_a, "shape"_a, "fd"_a, "zero_copy"_a = false, "cpus"_a = Cpus())
      .def(
          "add_verbs",
          [](NetworkSystem& system, std::size_t node, VerbsEndpoint& endpoint, int numa, Cpus cpus) {
            system.add(node, endpoint.take(), numa, std::move(cpus));
          },
          "node"_a, "endpoint"_a, "numa"_a = host::kAnyNode, "cpus"_a = Cpus())
      .def("lose", &NetworkSystem::lose, "node"_a, "reason"_a, Free())
      .def("forget", &NetworkSystem::forget, "node"_a, Free())
      .def("counters", counters_of)
      .def("latencies", latencies_of, "node"_a.none() = nb::none())
      .def("trace", trace_of)
      .def_prop_ro("stalled", &NetworkSystem::stalled);
}

void bind_node(nb::module_& m) {
  nb::class_<ChecksumSystem, loadtest::SystemUnderTest>(m, "ChecksumSystem",
                                                        "Answers at once with the CRC-32 of a query's slot.")
      .def(
          "__init__",
          [](ChecksumSystem* at, const SharedMemoryPointer& slots, std::size_t bytes) {
            new (at) ChecksumSystem(slots, bytes, loadtest::SampleLibrary::stride_of(bytes));
          },
          "slots"_a, "bytes"_a);
  nb::class_<BoundNodeSession>(m, "NodeSession", "A Frontend's session with this Accelerator node.")
      .def(nb::init<loadtest::SystemUnderTest&, std::string>(), "system"_a, "name"_a, nb::keep_alive<1, 2>())
      .def(
          "add_shm",
          [](BoundNodeSession& session, const nb::object& shape, SharedMemoryPointer memory,
             SharedMemoryPointer samples, std::size_t first_slot, Cpus cpus) {
            const ConnectionShape agreed = shape_of(shape);
            auto channel =
                shm_channel(ShmChannel::Side::kNode, agreed, std::move(memory), std::move(samples), first_slot);
            session.add(std::move(channel), agreed.answer_bytes, std::move(cpus));
          },
          "shape"_a, "memory"_a, "samples"_a, "first_slot"_a, "cpus"_a = Cpus())
      .def(
          "add_tcp",
          [](BoundNodeSession& session, const nb::object& shape, int fd, const SharedMemoryPointer& samples,
             std::size_t first_slot, Cpus cpus) {
            const ConnectionShape agreed = shape_of(shape);
            session.add(tcp_at_node(fd, agreed, samples, first_slot), agreed.answer_bytes, std::move(cpus));
          },
          "shape"_a, "fd"_a, "samples"_a, "first_slot"_a, "cpus"_a = Cpus())
      .def(
          "add_verbs",
          [](BoundNodeSession& session, VerbsEndpoint& endpoint, Cpus cpus) {
            session.add(endpoint.take(), endpoint.shape().answer_bytes, std::move(cpus));
          },
          "endpoint"_a, "cpus"_a = Cpus())
      .def_prop_ro("reason", &BoundNodeSession::reason)
      .def_prop_ro("received", &BoundNodeSession::received)
      .def_prop_ro("answered", &BoundNodeSession::answered)
      .def_prop_ro("doorbells", [](const BoundNodeSession& self) { return self.sum(&ChannelCounters::doorbells); })
      .def_prop_ro("wakeups", [](const BoundNodeSession& self) { return self.sum(&ChannelCounters::wakeups); })
      .def("close", &BoundNodeSession::close, Free());
}

}  // namespace
}  // namespace lanewise::dispatch

namespace lanewise::bindings {

void bind_dispatch(nb::module_& m) {
  using namespace dispatch;
  nb::class_<SlotMemory>(m, "SlotMemory", "Slots that a node's Frontend fills: host memory, or a GPU's.")
      .def_prop_ro("size", &SlotMemory::size);
  nb::class_<GpuMemory, SlotMemory>(m, "GpuMemory", "Memory of a GPU that RDMA devices write to, by dma-buf.")
      .def(nb::init<const std::string&, int, std::size_t>(), "driver"_a, "ordinal"_a, "bytes"_a, Free());
  m.def("check_gpu_memory", &check_gpu_memory, "driver"_a, "ordinal"_a, Free(),
        "ProbeFailure says what the CUDA driver, that GPU or libibverbs lacks for GpuMemory.");
  nb::class_<SharedMemory, SlotMemory>(m, "SharedMemory", "Memory that another process may map by its descriptor.")
      .def(nb::init<std::size_t, int>(), "bytes"_a, "node"_a = -1, Free())
      .def_static("map", &SharedMemory::map, "fd"_a, "bytes"_a)
      .def_prop_ro("fd", &SharedMemory::fd);
  m.def(
      "shm_bytes",
      [](const nb::object& shape) {
        const ConnectionShape agreed = shape_of(shape);
        return ShmLayout{agreed.slots, agreed.sample_bytes, agreed.answer_bytes}.total();
      },
      "shape"_a, "Bytes of the memory of a connection within one host.");
  bind_verbs_endpoint(m);
  bind_frontend(m);
  bind_node(m);
}

}  // namespace lanewise::bindings
