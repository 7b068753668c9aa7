// Calls of NCCL as one group, issued again and again without an interpreter between them; NCCL itself is not linked.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace lanewise::cuda {

// Where a group failed: which call of `GroupCalls`, counted with the one that begins the group, and NCCL's code.
struct GroupFailure {
  std::size_t call;
  int code;
};

class GroupCalls {
 public:
  using Plain = int (*)();
  // ncclAllReduce, ncclReduceScatter and ncclBroadcast: two buffers, count, type, operation or root, rank, stream.
  using Rooted = int (*)(const void*, void*, std::size_t, int, int, void*, void*);
  // ncclAllGather.
  using Gather = int (*)(const void*, void*, std::size_t, int, void*, void*);
  // ncclSend and ncclRecv: a buffer, count, type, peer, rank, stream.
  using PeerToPeer = int (*)(void*, std::size_t, int, int, void*, void*);

  GroupCalls(Plain start, Plain end) : start_(start), end_(end) {}

  void add(std::function<int()> call) { calls_.push_back(std::move(call)); }

  // The group so many times, on the calling thread; {0, 0} or the first call that failed, after which no other is made.
  GroupFailure issue(int times) const;

 private:
  Plain start_, end_;
  std::vector<std::function<int()>> calls_;
};

}  // namespace lanewise::cuda
