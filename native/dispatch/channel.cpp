#include "dispatch/channel.hpp"

namespace lanewise::dispatch {

host::Failure Channel::senseless() {
  return {"the other side of a connection sent a message without meaning",
          "use the same version of Lanewise on both sides"};
}

void Channel::take(std::span<Message> into, std::span<const Message> ring, std::uint32_t first) {
  std::uint64_t bytes = 0, count = 0;
  for (std::size_t i = 0; i < into.size(); ++i) {
    into[i] = ring[(first + i) & (ring.size() - 1)];  // a copy: the peer could change it after the check
    if (!slots().accepts(into[i])) throw senseless();
    bytes += into[i].bytes;
    count += is_transaction(into[i].kind) ? 1 : 0;
  }
  ChannelCounters::add(counters_.received, count);
  ChannelCounters::add(counters_.bytes_in, bytes);
}

}  // namespace lanewise::dispatch
