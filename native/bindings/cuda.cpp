// Binds native/cuda. Whatever waits for a GPU does so without the interpreter's lock.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "cuda/blocks.hpp"
#include "cuda/group_calls.hpp"
#include "cuda/latency.hpp"
#include "cuda/queries.hpp"
#include "cuda/run.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lanewise::bindings {

namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;

struct Timing {
  std::vector<double> timestamps;
};

// What the driver says of a GPU, and the driver to ask for what changes.
struct Device {
  cuda::DeviceFacts facts;
  std::shared_ptr<cuda::Engine> engine;
};

class Cuda {
 public:
  Cuda(const std::string& library, const std::string& module_loading)
      : engine_(std::make_shared<cuda::Engine>(library, module_loading)) {}

  int driver() const { return engine_->driver().version(); }
  std::vector<Device> devices() const {
    std::vector<Device> devices;
    for (const cuda::DeviceFacts& facts : engine_->devices()) devices.push_back({facts, engine_});
    return devices;
  }
  const std::shared_ptr<cuda::Engine>& engine() const { return engine_; }

 private:
  std::shared_ptr<cuda::Engine> engine_;
};

std::size_t free_bytes(const Device& device) {
  const std::scoped_lock turn(device.engine->turn());
  return device.engine->free_bytes(device.facts.ordinal);
}

std::vector<Timing> timings(cuda::Run& run) {
  std::vector<Timing> timings;
  for (auto& timestamps : run.run()) timings.push_back({std::move(timestamps)});
  return timings;
}

template <auto Member>
auto fact(const Device& device) {
  return device.facts.*Member;
}

void bind_plain(nb::module_& m) {
  using Facts = cuda::DeviceFacts;
  nb::class_<Device>(m, "CudaDevice", "One GPU as the driver shows it.")
      .def_prop_ro("ordinal", fact<&Facts::ordinal>)
      .def_prop_ro("name", fact<&Facts::name>)
      .def_prop_ro("pci", fact<&Facts::pci>)
      .def_prop_ro("numa", fact<&Facts::numa>)
      .def_prop_ro("memory", fact<&Facts::memory>)
      .def_prop_ro("free", free_bytes, nb::for_getter(Unlocked()))
      .def_prop_ro("multiprocessors", fact<&Facts::multiprocessors>)
      .def_prop_ro("copy_engines", fact<&Facts::copy_engines>)
      .def_prop_ro("capability", fact<&Facts::capability>);
  nb::class_<cuda::Flow>(m, "CudaFlow", "Copies of some bytes from one end to another.")
      .def(
          "__init__",
          [](cuda::Flow* at, int src, int dst, std::size_t bytes, int copies, int node, bool sm, bool read, bool p2p,
             bool duplex) { new (at) cuda::Flow{src, dst, bytes, copies, node, sm, read, p2p, duplex}; },
          "src"_a, "dst"_a, "bytes"_a, "copies"_a, "node"_a = host::kAnyNode, "sm"_a = false, "read"_a = false,
          "p2p"_a = true, "duplex"_a = false)
      .def_ro("src", &cuda::Flow::src)
      .def_ro("dst", &cuda::Flow::dst)
      .def_ro("bytes", &cuda::Flow::bytes)
      .def_ro("copies", &cuda::Flow::copies)
      .def_ro("node", &cuda::Flow::node)
      .def_ro("sm", &cuda::Flow::sm)
      .def_ro("read", &cuda::Flow::read)
      .def_ro("p2p", &cuda::Flow::p2p)
      .def_ro("duplex", &cuda::Flow::duplex);
  nb::class_<Timing>(m, "CudaTiming", "One flow's run.").def_ro("timestamps", &Timing::timestamps);
  m.attr("CUDA_MOST_COPIES") = cuda::kMostHeld;
}

void bind_run(nb::module_& m) {
  nb::class_<cuda::Run>(m, "PreparedCopies", "Buffers, streams and events of some flows, ready to run again and again.")
      .def("run", timings, Unlocked())
      .def("verify", &cuda::Run::verify, Unlocked())
      .def("pages", &cuda::Run::pages, Unlocked())
      .def("resize", &cuda::Run::resize, "timestamp_counts"_a, "copies_per_timestamp"_a = std::vector<int>(),
           Unlocked())
      .def("close", &cuda::Run::close, Unlocked());
}

void bind_blocks(nb::module_& m) {
  nb::class_<cuda::Blocks>(m, "CudaBlocks", "Pieces of one size from one memory to another.")
      .def(
          "__init__",
          [](cuda::Blocks* at, int src, int dst, std::size_t bytes, std::size_t count, std::string method, int node) {
            new (at) cuda::Blocks{src, dst, bytes, count, node, std::move(method)};
          },
          "src"_a, "dst"_a, "bytes"_a, "count"_a, "method"_a, "node"_a = host::kAnyNode);
  nb::class_<cuda::BlockRun>(m, "BlockRun", "Flows of pieces that start together, again and again.")
      .def("run", &cuda::BlockRun::run, Unlocked())
      .def("verify", &cuda::BlockRun::verify, Unlocked())
      .def("pages", &cuda::BlockRun::pages, Unlocked())
      .def("close", &cuda::BlockRun::close, Unlocked());
}

template <class Function>
Function function_at(std::uintptr_t address) {
  return reinterpret_cast<Function>(address);
}

void* pointer(std::uintptr_t address) { return function_at<void*>(address); }

// Addresses are numbers here, as ctypes has them.
void bind_group_calls(nb::module_& m) {
  using Calls = cuda::GroupCalls;
  using Address = std::uintptr_t;
  nb::class_<Calls>(m, "GroupCalls", "Calls of NCCL as one group, issued again and again.")
      .def(
          "__init__",
          [](Calls* at, Address start, Address end) {
            new (at) Calls{function_at<Calls::Plain>(start), function_at<Calls::Plain>(end)};
          },
          "start"_a, "end"_a)
      .def(
          "add_rooted",
          [](Calls& calls, Address function, Address send, Address receive, std::size_t count, int type, int which,
             Address rank, Address stream) {
            calls.add([=, call = function_at<Calls::Rooted>(function)] {
              return call(pointer(send), pointer(receive), count, type, which, pointer(rank), pointer(stream));
            });
          },
          "function"_a, "send"_a, "receive"_a, "count"_a, "type"_a, "which"_a, "rank"_a, "stream"_a)
      .def(
          "add_gather",
          [](Calls& calls, Address function, Address send, Address receive, std::size_t count, int type, Address rank,
             Address stream) {
            calls.add([=, call = function_at<Calls::Gather>(function)] {
              return call(pointer(send), pointer(receive), count, type, pointer(rank), pointer(stream));
            });
          },
          "function"_a, "send"_a, "receive"_a, "count"_a, "type"_a, "rank"_a, "stream"_a)
      .def(
          "add_peer",
          [](Calls& calls, Address function, Address buffer, std::size_t count, int type, int peer, Address rank,
             Address stream) {
            calls.add([=, call = function_at<Calls::PeerToPeer>(function)] {
              return call(pointer(buffer), count, type, peer, pointer(rank), pointer(stream));
            });
          },
          "function"_a, "buffer"_a, "count"_a, "type"_a, "peer"_a, "rank"_a, "stream"_a)
      .def(
          "issue",
          [](const Calls& calls, int times) {
            const cuda::GroupFailure failure = calls.issue(times);
            return std::pair(failure.call, failure.code);
          },
          "times"_a, Unlocked());
}

}  // namespace

void bind_cuda(nb::module_& m) {
  bind_plain(m);
  bind_run(m);
  bind_blocks(m);
  bind_group_calls(m);
  nb::class_<Cuda>(m, "Cuda", "The CUDA driver, opened at run time.")
      .def(nb::init<const std::string&, const std::string&>(), "library"_a = "libcuda.so.1",
           "module_loading"_a = "EAGER", Unlocked())
      .def_prop_ro("driver", &Cuda::driver)
      .def_prop_ro("devices", &Cuda::devices)
      .def_prop_ro("holds_staged", [](const Cuda& c) { return c.engine()->holds_staged(); })
      .def(
          "can_peer", [](const Cuda& c, int device, int peer) { return c.engine()->can_peer(device, peer); },
          "device"_a, "peer"_a)
      .def(
          "prepare",
          [](const Cuda& c, const std::vector<cuda::Flow>& flows) { return cuda::prepare(c.engine(), flows); },
          "flows"_a, Unlocked())
      .def(
          "prepare_queries",
          [](const Cuda& c, int device, int node, std::string method, std::size_t library, std::size_t bytes, int batch,
             int batches) {
            return cuda::prepare_queries(c.engine(), {device, node, std::move(method), library, bytes, batch, batches});
          },
          "device"_a, "node"_a, "method"_a, "library"_a = 8192, "bytes"_a = 150528, "batch"_a = 128, "batches"_a = 8,
          Unlocked())
      .def(
          "prepare_blocks",
          [](const Cuda& c, const std::vector<cuda::Blocks>& flows) {
            return std::make_unique<cuda::BlockRun>(c.engine(), flows);
          },
          "flows"_a, Unlocked())
      .def(
          "chase",
          [](const Cuda& c, int reader, int holder, int node, long steps, std::size_t bytes) {
            return cuda::chase(*c.engine(), {reader, holder, node, steps, bytes});
          },
          "reader"_a, "holder"_a, "node"_a = host::kAnyNode, "steps"_a = 100'000, "bytes"_a = std::size_t{2} << 20,
          Unlocked())
      .def(
          "launch",
          [](const Cuda& c, int src, int dst, bool p2p, int repeats, int node) {
            return cuda::launch(*c.engine(), {src, dst, p2p, repeats, node});
          },
          "src"_a, "dst"_a, "p2p"_a, "repeats"_a = 100, "node"_a = host::kAnyNode, Unlocked());
}

}  // namespace lanewise::bindings
