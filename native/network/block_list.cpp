#include "network/block_list.hpp"

#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "host/failure.hpp"
#include "network/pattern.hpp"

namespace lanewise::network {

// Not std::shuffle, whose order differs from one standard library to the other: the two ends may be of two builds.
std::vector<std::uint32_t> block_places(std::size_t count, bool at_source) {
  std::vector<std::uint32_t> places(count);
  std::iota(places.begin(), places.end(), 0U);
  std::mt19937 random(at_source ? 1 : 2);
  for (std::size_t i = count; i > 1; --i) std::swap(places[i - 1], places[random() % i]);
  return places;
}

void fill_blocks(std::byte* at, const std::vector<std::uint32_t>& places, std::size_t bytes, std::size_t stride,
                 std::uint64_t seed) {
  for (std::size_t i = 0; i < places.size(); ++i) fill_pattern({at + places[i] * stride, bytes}, seed, i * bytes);
}

void check_blocks(const std::byte* at, const std::vector<std::uint32_t>& places, std::size_t bytes, std::size_t stride,
                  std::uint64_t seed) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t fault = first_fault({at + places[i] * stride, bytes}, seed, i * bytes);
    if (fault == kNoFault) continue;
    throw host::Failure("data arrived changed: block " + std::to_string(i) + ", byte " + std::to_string(fault),
                        "do not trust this path: look at the card, its driver and the kernel's log");
  }
}

}  // namespace lanewise::network
