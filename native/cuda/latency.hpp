// The two latencies that tools print: of a load, and of a small copy started from the host.
#pragma once

#include "cuda/engine.hpp"

namespace lanewise::cuda {

struct Chase {
  int reader = 0;
  int holder = -1;  // -1: the host
  int node = -1;
  long steps = 100'000;
  std::size_t bytes = std::size_t{2} << 20;
};

// Seconds a step. As nvbandwidth's latency cases: 8-byte nodes, each pointing 128 bytes on; one thread on each
// multiprocessor in turn takes its share of the steps, timed by events, the shares' times added up, less what a launch
// without steps takes. The shares together touch as much memory as each of nvbandwidth's longer walks.
double chase(Engine& engine, const Chase& options);

struct Launch {
  int src = 0;
  int dst = 0;
  bool p2p = true;
  int repeats = 100;
  int node = -1;
};

// Seconds a copy of 16 bytes. As p2pBandwidthLatencyTest without --sm_copy: a row of cuMemcpyPeerAsync on a stream of
// `src` behind the closed gate, an event before and one after all; with the host at one end, the plain copy.
double launch(Engine& engine, const Launch& options);

}  // namespace lanewise::cuda
