// Memory, completion queue and queue pairs of one side of a measurement, each freed in the reverse order.
#pragma once

#include "network/verbs_device.hpp"

#ifdef LANEWISE_VERBS
#include <vector>

#include "host/memory.hpp"
#include "network/verbs_end.hpp"

namespace lanewise::network {

class VerbsResources {
 public:
  explicit VerbsResources(const VerbsSetup& setup);

  VerbsAddress address() const;
  void connect(const VerbsAddress& peer);
  std::byte* slot(std::size_t index) const { return memory_.data() + index * stride_; }
  std::uint64_t peer_slot(std::size_t index) const { return peer_.memory + index * stride_; }
  std::uint32_t peer_key() const { return peer_.key; }
  std::uint32_t key() const { return region_->lkey; }
  std::size_t pairs() const { return pairs_.size(); }
  ibv_qp* pair(std::size_t index) const { return pairs_[index].get(); }
  int inline_bytes() const { return inline_bytes_; }
  const host::Memory& memory() const { return memory_; }

  // Up to `most` completions; where there are none and the side sleeps, waits a tenth of a second for one.
  int completions(ibv_wc* out, int most);

 private:
  void make_pairs(const VerbsSetup& setup);

  VerbsDevice device_;
  int inline_bytes_ = 0;
  std::size_t stride_;
  host::Memory memory_;
  VerbsAddress peer_;
  VerbsOwned<ibv_mr> region_;
  VerbsOwned<ibv_comp_channel> channel_;  // null: it looks without pause
  VerbsOwned<ibv_cq> queue_;
  std::vector<VerbsOwned<ibv_qp>> pairs_;
};

}  // namespace lanewise::network
#endif
