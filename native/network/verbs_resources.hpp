// Device, memory, completion queue and queue pairs of one side, each freed in the reverse order.
#pragma once

#include "network/verbs_library.hpp"

#ifdef LANEWISE_VERBS
#include <functional>
#include <memory>

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
  template <typename T>
  using Owned = std::unique_ptr<T, std::function<void(T*)>>;

  void make_pairs(const VerbsSetup& setup);

  const VerbsLibrary& ibv_;
  int port_, gid_index_;
  bool events_;
  int inline_bytes_ = 0;
  std::size_t stride_;
  host::Memory memory_;
  ibv_port_attr attributes_{};
  ibv_device_attr limits_{};
  ibv_gid gid_{};
  std::uint32_t psn_;
  VerbsAddress peer_;
  Owned<ibv_context> context_;
  Owned<ibv_pd> domain_;
  Owned<ibv_mr> region_;
  Owned<ibv_comp_channel> channel_;
  Owned<ibv_cq> queue_;
  std::vector<Owned<ibv_qp>> pairs_;
};

}  // namespace lanewise::network
#endif
