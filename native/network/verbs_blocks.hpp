// Blocks over one RC queue pair: RDMA writes posted in lists, of which the last asks for a completion.
#pragma once

#include <map>
#include <memory>

#include "network/block_list.hpp"
#include "network/verbs_end.hpp"

namespace lanewise::network {

class VerbsBlocks {
 public:
  // Of `setup` pairs and work do not count: there is one queue pair, and the source writes. `list`: blocks that a call
  // posts, at most the setup's depth.
  VerbsBlocks(const VerbsSetup& setup, std::size_t count, std::size_t list);
  ~VerbsBlocks();
  VerbsBlocks(const VerbsBlocks&) = delete;
  VerbsBlocks& operator=(const VerbsBlocks&) = delete;

  VerbsAddress address() const;
  void connect(const VerbsAddress& peer);
  BlockTimes transfer();  // of the source, in the calling thread
  void check() const;     // of the destination: compares what arrived; host::Failure if it differs
  std::map<int, std::size_t> nodes() const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace lanewise::network
