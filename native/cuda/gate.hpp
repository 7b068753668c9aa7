// A word of pinned host memory that kernels on any number of streams wait for: all start when it opens.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/gpu.hpp"
#include "cuda/pinned.hpp"

namespace lanewise::cuda {

// Items of a stream that may wait behind a closed gate, an event after each. A stream's queue takes 1,024 entries;
// once it is full the driver blocks whoever queues, who then never opens the gate.
constexpr int kMostHeld = 256;

class Gate {
 public:
  explicit Gate(const std::shared_ptr<const Context>& context);

  void close();
  // Queues a kernel that waits until the gate opens, at most kLongest.
  void hold(const Gpu& gpu, CUstream stream) const;
  void open();
  // Whether no kernel gave up waiting since close(); host::Failure if one did: what ran then did not start together.
  bool in_time() const;
  void check_in_time() const;

  static constexpr std::chrono::seconds kLongest{2};

 private:
  Pinned memory_;
};

// Opens the gate and waits for the streams at the end of the scope, whatever happened in it: nothing that they
// use may be freed before, and none may stay blocked.
class Settled {
 public:
  Settled(Gate& gate, std::vector<std::pair<const Gpu*, CUstream>> streams)
      : gate_(gate), streams_(std::move(streams)) {}
  ~Settled();
  Settled(const Settled&) = delete;
  Settled& operator=(const Settled&) = delete;

 private:
  Gate& gate_;
  std::vector<std::pair<const Gpu*, CUstream>> streams_;
};

}  // namespace lanewise::cuda
