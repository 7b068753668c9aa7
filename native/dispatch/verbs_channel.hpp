// A connection over an RDMA device: one RC queue pair over InfiniBand or RoCE. Who posts writes the data into the
// peer's slot and its messages into the peer's ring, by RDMA; the last write of a group carries how many messages there
// are by now, and is the only one that completes or wakes anybody, on either side.
#pragma once

#include <memory>
#include <optional>

#include "dispatch/channel.hpp"
#include "host/memory.hpp"
#include "network/verbs_address.hpp"

namespace lanewise::dispatch {

// What one side tells the other, over the control channel. `queue_pair`: its memory and key are those of the slots.
struct VerbsChannelAddress {
  network::VerbsAddress queue_pair;
  std::uint64_t ring = 0;  // where messages go
  std::uint32_t ring_key = 0;
};

struct VerbsChannelSetup {
  network::VerbsPort port;
  int node = host::kAnyNode;           // NUMA node of the message rings
  Slots mine;                          // what the peer fills
  Slots peers;                         // the same of the peer; its data lies elsewhere
  std::shared_ptr<const void> keeper;  // keeps the memory of `mine`
  // Where `mine` is memory of a GPU, the dma-buf that it is in, and how far behind its begin.
  std::optional<int> dma_buf = {};
  std::uint64_t dma_buf_offset = 0;
};

class VerbsChannel : public Channel {
 public:
  virtual VerbsChannelAddress address() const = 0;
  // Before anything is posted or received. host::Failure where the peer's address is not valid.
  virtual void connect(const VerbsChannelAddress& peer) = 0;
};

// host::Failure where verbs are not compiled in or not installed, or the device does not allow it.
std::unique_ptr<VerbsChannel> make_verbs_channel(VerbsChannelSetup setup);

}  // namespace lanewise::dispatch
