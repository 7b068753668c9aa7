#include "network/pattern.hpp"

#include <algorithm>

namespace lanewise::network {
namespace {

// splitmix64: every position has its own word, so that lost, repeated and swapped pieces all show.
std::uint64_t word_at(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0xD1342543DE82EF95ULL + (index + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

std::byte byte_of(std::uint64_t word, std::uint64_t offset) {
  return static_cast<std::byte>(static_cast<unsigned char>(word >> (8 * (offset % 8))));
}

}  // namespace

void fill_pattern(std::span<std::byte> out, std::uint64_t seed, std::uint64_t offset) {
  for (std::size_t i = 0; i < out.size();) {
    const std::uint64_t word = word_at(seed, (offset + i) / 8);
    do {
      out[i] = byte_of(word, offset + i);
      ++i;
    } while (i < out.size() && (offset + i) % 8 != 0);
  }
}

std::size_t first_fault(std::span<const std::byte> got, std::uint64_t seed, std::uint64_t offset) {
  for (std::size_t i = 0; i < got.size();) {
    const std::uint64_t word = word_at(seed, (offset + i) / 8);
    do {
      if (got[i] != byte_of(word, offset + i)) return i;
      ++i;
    } while (i < got.size() && (offset + i) % 8 != 0);
  }
  return kNoFault;
}

std::uint64_t pattern_length(std::size_t bytes) {
  return std::clamp<std::uint64_t>(4 * static_cast<std::uint64_t>(bytes), 1 << 16, 1 << 22);
}

}  // namespace lanewise::network
