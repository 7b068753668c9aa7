// Binds native/network. What stops a measurement comes back as ProbeFailure(cause, hint).
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <new>

#include "network/tcp_blocks.hpp"
#include "network/tcp_ping.hpp"
#include "network/tcp_stream.hpp"
#include "network/verbs_address_dict.hpp"
#include "network/verbs_blocks.hpp"
#include "network/verbs_end.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lanewise::network {
namespace {
using Free = nb::call_guard<nb::gil_scoped_release>;

// What is destroyed waits for its threads, at most a tenth of a second or two: others may run meanwhile.
template <typename End>
void close(End& self) {
  nb::gil_scoped_release others_may_run;
  self.stop();
}

void bind_tcp(nb::module_& m) {
  nb::class_<TcpStream>(m, "TcpStream", "One direction of bytes over connected sockets, a thread for each.")
      .def(nb::init<std::vector<int>, bool, const Setup&, bool>(), "sockets"_a, "sends"_a, "setup"_a,
           "zero_copy"_a = false)
      .def("ready", &TcpStream::ready)
      .def("check", [](TcpStream& self) { self.ready(); })
      .def("go", &TcpStream::go)
      .def("counters", &TcpStream::counters)
      .def("stop", &close<TcpStream>)
      .def("done", &TcpStream::done)
      .def("nodes", &TcpStream::nodes)
      .def_prop_ro("copied", &TcpStream::copied);
  nb::class_<TcpPing>(m, "TcpPing", "Messages back and forth over one connected socket.")
      .def(nb::init<int, bool, const Setup&>(), "socket"_a, "asks"_a, "setup"_a)
      .def("ready", &TcpPing::ready)
      .def("check", [](TcpPing& self) { self.ready(); })
      .def("go", &TcpPing::go)
      .def("take", &TcpPing::take, Free())
      .def("stop", &close<TcpPing>)
      .def("done", &TcpPing::done)
      .def("nodes", &TcpPing::nodes);
}

void bind_blocks(nb::module_& m) {
  nb::class_<BlockTimes>(m, "BlockTimes", "What a transfer of blocks took, in s: all, in posts, in completions.")
      .def_ro("seconds", &BlockTimes::seconds)
      .def_ro("posting", &BlockTimes::posting)
      .def_ro("completing", &BlockTimes::completing);
  nb::class_<TcpBlocks>(m, "TcpBlocks", "Scattered blocks over one connected socket.")
      .def(nb::init<int, bool, const Setup&, std::size_t, std::size_t>(), "socket"_a, "sends"_a, "setup"_a, "count"_a,
           "list"_a)
      .def("transfer", &TcpBlocks::transfer, Free())
      .def("ready", &TcpBlocks::ready)
      .def("check", &TcpBlocks::check, Free())
      .def("go", [](const TcpBlocks&) {})
      .def("stop", &close<TcpBlocks>)
      .def("done", &TcpBlocks::done)
      .def("nodes", &TcpBlocks::nodes);
  nb::class_<VerbsBlocks>(m, "VerbsBlocks", "Scattered blocks over one RC queue pair, by RDMA writes.")
      .def(nb::init<const VerbsSetup&, std::size_t, std::size_t>(), "setup"_a, "count"_a, "list"_a)
      .def("address", [](const VerbsBlocks& self) { return to_dict(self.address()); })
      .def(
          "connect", [](VerbsBlocks& self, const nb::dict& peer) { self.connect(to_address(peer)); }, "peer"_a)
      .def("transfer", &VerbsBlocks::transfer, Free())
      .def("check", &VerbsBlocks::check, Free())
      .def("ready", [](const VerbsBlocks&) { return true; })
      .def("go", [](const VerbsBlocks&) {})
      .def("stop", [](const VerbsBlocks&) {})
      .def("done", [](const VerbsBlocks&) { return true; })
      .def("nodes", &VerbsBlocks::nodes);
}

void bind_verbs(nb::module_& m) {
  nb::enum_<Work>(m, "VerbsWork")
      .value("WRITE", Work::kWrite)
      .value("READ", Work::kRead)
      .value("SEND", Work::kSend)
      .value("RECEIVE", Work::kReceive)
      .value("NOTHING", Work::kNothing)
      .value("ASK_WRITE", Work::kAskWrite)
      .value("ANSWER_WRITE", Work::kAnswerWrite)
      .value("ASK_SEND", Work::kAskSend)
      .value("ANSWER_SEND", Work::kAnswerSend);
  nb::class_<VerbsSetup>(m, "VerbsSetup")
      .def(
          "__init__", [](VerbsSetup* self, const Setup& common) { new (self) VerbsSetup{.common = common}; },
          "common"_a)
      .def_prop_rw(
          "device", [](const VerbsSetup& self) { return self.port.device; },
          [](VerbsSetup& self, std::string name) { self.port.device = std::move(name); })
      .def_prop_rw(
          "port", [](const VerbsSetup& self) { return self.port.port; },
          [](VerbsSetup& self, int number) { self.port.port = number; })
      .def_prop_rw(
          "gid_index", [](const VerbsSetup& self) { return self.port.gid_index; },
          [](VerbsSetup& self, int index) { self.port.gid_index = index; })
      .def_rw("work", &VerbsSetup::work)
      .def_rw("is_source", &VerbsSetup::is_source)
      .def_rw("pairs", &VerbsSetup::pairs)
      .def_rw("depth", &VerbsSetup::depth)
      .def_rw("inline_bytes", &VerbsSetup::inline_bytes)
      .def_rw("events", &VerbsSetup::events);
  nb::class_<VerbsEnd>(m, "VerbsEnd", "One side of RC queue pairs between two processes.")
      .def(nb::init<const VerbsSetup&>(), "setup"_a)
      .def("address", [](const VerbsEnd& self) { return to_dict(self.address()); })
      .def(
          "connect", [](VerbsEnd& self, const nb::dict& peer) { self.connect(to_address(peer)); }, "peer"_a)
      .def("begin", &VerbsEnd::begin)
      .def("ready", &VerbsEnd::ready)
      .def("check", &VerbsEnd::check, Free())
      .def("go", &VerbsEnd::go)
      .def("counters", &VerbsEnd::counters)
      .def("take", &VerbsEnd::take, Free())
      .def("stop", &close<VerbsEnd>)
      .def("done", &VerbsEnd::done)
      .def("nodes", &VerbsEnd::nodes);
  m.def("verbs_devices", &verbs_devices, "Names of the RDMA devices; ProbeFailure without verbs.");
}

}  // namespace
}  // namespace lanewise::network

namespace lanewise::bindings {

void bind_network(nb::module_& m) {
  using namespace network;
  nb::class_<Setup>(m, "EndSetup", "Message bytes, NUMA node of the buffers (-1: any), CPUs of the threads, seed.")
      .def(
          "__init__",
          [](Setup* self, std::size_t bytes, int node, std::vector<int> cpus, std::uint64_t seed) {
            new (self) Setup{bytes, node, std::move(cpus), seed};
          },
          "bytes"_a, "node"_a = -1, "cpus"_a = std::vector<int>{}, "seed"_a = 0);
  nb::class_<ByteCounters>(m, "ByteCounters", "Bytes of each connection at one moment of this machine's clock.")
      .def_ro("seconds", &ByteCounters::seconds)
      .def_ro("bytes", &ByteCounters::bytes);
  nb::class_<RoundTrips>(m, "RoundTrips", "Half round trips, every one: mean and exact percentiles in us.")
      .def_prop_ro("count", &RoundTrips::count)
      .def("mean", &RoundTrips::mean)
      .def("percentile", &RoundTrips::percentile, "share"_a);
  bind_tcp(m);
  bind_verbs(m);
  bind_blocks(m);
}

}  // namespace lanewise::bindings
