#include "dispatch/channel.hpp"

namespace lanewise::dispatch {

host::Failure Channel::senseless() {
  return {"the other side of a connection sent a message without meaning",
          "use the same version of Lanewise on both sides"};
}

void Channel::take(std::span<Message> into, std::span<const Message> ring, std::uint32_t first) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < into.size(); ++i) {
    into[i] = ring[(first + i) & (ring.size() - 1)];  // a copy: the peer could change it after the check
    if (!slots().accepts(into[i])) throw senseless();
    bytes += into[i].bytes;
  }
  counters_.received.fetch_add(into.size(), std::memory_order_relaxed);
  counters_.bytes_in.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace lanewise::dispatch
