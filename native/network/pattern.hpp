// Bytes that both ends know without telling each other: what arrives is compared byte by byte, outside of what is
// timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lanewise::network {

// The bytes of stream `seed` from `offset` on.
void fill_pattern(std::span<std::byte> out, std::uint64_t seed, std::uint64_t offset);

constexpr std::size_t kNoFault = static_cast<std::size_t>(-1);

// Where `got` first differs from the bytes of stream `seed` from `offset` on; kNoFault where it does not.
std::size_t first_fault(std::span<const std::byte> got, std::uint64_t seed, std::uint64_t offset);

// How many bytes an exchange of the pattern moves for messages of that size, the same at both ends.
std::uint64_t pattern_length(std::size_t bytes);

}  // namespace lanewise::network
