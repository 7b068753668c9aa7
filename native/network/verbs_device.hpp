// An RDMA device with one of its ports and GIDs, and what is made of it: regions of memory, completion queues and RC
// queue pairs. Both `measure network` and the query dispatch stand on it. Every object is freed by its owner.
#pragma once

#include "network/verbs_context.hpp"

#ifdef LANEWISE_VERBS
#include "network/verbs_address.hpp"

namespace lanewise::network {

class VerbsDevice {
 public:
  // host::Failure where there is no such device, port or GID, or the port is not active.
  explicit VerbsDevice(VerbsPort port);

  const VerbsLibrary& library() const { return ibv_; }
  VerbsContext& context() const { return *context_; }
  const std::string& name() const { return port_.device; }
  const ibv_device_attr& limits() const { return limits_; }

  VerbsOwned<ibv_comp_channel> completion_channel() const;  // reading it never waits
  VerbsOwned<ibv_cq> completion_queue(int entries, ibv_comp_channel* channel) const;
  // An RC queue pair on this port, whose limits the attributes then hold; null where the device does not allow those
  // asked for (errno says why).
  VerbsOwned<ibv_qp> queue_pair(ibv_qp_init_attr& attributes) const;

  // What the other side needs to know of this port; memory, key and queue pairs are for the caller to add.
  VerbsAddress address() const;
  // Connects a queue pair to the peer's `number`; the peer's address was checked.
  void connect(ibv_qp* pair, const VerbsAddress& peer, std::uint32_t number) const;

 private:
  VerbsPort port_;
  std::shared_ptr<VerbsContext> context_;
  const VerbsLibrary& ibv_ = context_->library();
  ibv_port_attr attributes_{};
  ibv_device_attr limits_{};
  ibv_gid gid_{};
};

}  // namespace lanewise::network
#endif
