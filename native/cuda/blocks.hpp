// Many pieces of one size between two memories, scattered in both, as the blocks of a KV cache are: timed by the CPU
// from the first call to the last piece's arrival, so that what posting costs counts.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/copy_stream.hpp"
#include "cuda/engine.hpp"

namespace lanewise::cuda {

// `count` pieces of `bytes` (a multiple of 16) from `src` to `dst`, GPUs or kHost.
struct Blocks {
  int src = kHost;
  int dst = kHost;
  std::size_t bytes = 0;
  std::size_t count = 0;
  int node = host::kAnyNode;  // of the host's memory
  // cuMemcpyAsync: a call a piece; cuMemcpyBatchAsync: one for all; cuMemcpyBatchAsync-256: one for so many;
  // cuMemcpyBatchAsync-256-sorted: these in the order of the addresses at dst; kernel
  std::string method;
  Flow flow() const { return {.src = src, .dst = dst, .bytes = bytes * count, .node = node}; }
};

class BlockStream;

// Flows of pieces that start together, each posted by a thread of its own.
class BlockRun {
 public:
  BlockRun(std::shared_ptr<Engine> engine, const std::vector<Blocks>& flows);
  ~BlockRun();
  BlockRun(const BlockRun&) = delete;
  BlockRun& operator=(const BlockRun&) = delete;

  // Of each flow the seconds from the common start until its last piece has arrived.
  std::vector<double> run();
  // Moves a pattern and compares every piece; host::Failure names the first wrong byte.
  void verify();
  std::vector<std::map<int, std::size_t>> pages() const;
  void close();

 private:
  void check_open() const;

  std::shared_ptr<Engine> engine_;
  std::vector<std::unique_ptr<BlockStream>> streams_;
};

}  // namespace lanewise::cuda
