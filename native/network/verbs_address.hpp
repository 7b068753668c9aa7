// What the other side of RC queue pairs says of itself: JSON carries it, and nothing in it is trusted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lanewise::network {

// A port of an RDMA device, as its user names it.
struct VerbsPort {
  std::string device;  // as in /sys/class/infiniband
  int port = 1;
  int gid_index = 0;
};

struct VerbsAddress {
  std::string gid;  // 32 hexadecimal digits
  int lid = 0;
  int mtu = 0;    // as ibv_mtu counts, 1 to 5
  int reads = 0;  // RDMA reads it serves at once
  std::uint32_t psn = 0;
  std::uint64_t memory = 0;
  std::uint32_t key = 0;
  std::vector<std::uint32_t> pairs;
};

using GidBytes = std::array<std::uint8_t, 16>;

// The bytes of a GID in hexadecimal digits; host::Failure for anything else.
GidBytes gid_bytes(const std::string& text);

// host::Failure unless every number lies where InfiniBand's lie and there are `pairs` queue pairs.
void check_address(const VerbsAddress& address, std::size_t pairs);

}  // namespace lanewise::network
