#include "network/verbs_address.hpp"

#include <charconv>

#include "host/failure.hpp"

namespace lanewise::network {
namespace {

constexpr int kMostMtu = 5;  // IBV_MTU_4096
constexpr int kMostLid = 0xFFFF;
constexpr int kMostReadsOfPeer = 255;         // what a queue pair's attribute holds
constexpr std::uint32_t kMostPsn = 0xFFFFFF;  // 24 bits, as queue pair numbers

[[noreturn]] void refuse(const std::string& what) {
  throw host::Failure("the other side's RDMA address is not valid: " + what,
                      "use the same version of Lanewise on both");
}

}  // namespace

GidBytes gid_bytes(const std::string& text) {
  GidBytes bytes{};
  if (text.size() != 2 * bytes.size()) refuse("its GID has " + std::to_string(text.size()) + " digits, not 32");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* const first = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(first, first + 2, bytes[i], 16);
    if (error != std::errc{} || end != first + 2) refuse("its GID is not hexadecimal");
  }
  return bytes;
}

void check_address(const VerbsAddress& address, std::size_t pairs) {
  gid_bytes(address.gid);
  if (address.lid < 0 || address.lid > kMostLid) refuse("LID " + std::to_string(address.lid));
  if (address.mtu < 1 || address.mtu > kMostMtu) refuse("MTU " + std::to_string(address.mtu));
  if (address.reads < 0 || address.reads > kMostReadsOfPeer) refuse(std::to_string(address.reads) + " reads at once");
  if (address.psn > kMostPsn) refuse("packet sequence number " + std::to_string(address.psn));
  if (address.pairs.size() != pairs) {
    refuse(std::to_string(address.pairs.size()) + " queue pairs, not " + std::to_string(pairs));
  }
  for (const std::uint32_t number : address.pairs) {
    if (number > kMostPsn) refuse("queue pair " + std::to_string(number));
  }
}

}  // namespace lanewise::network
