// Blocks of one size that go from scattered places of one process's memory to scattered places of another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lanewise::network {

// What a transfer took, s: until the last block had arrived; in calls that post blocks; in calls that took completions.
struct BlockTimes {
  double seconds = 0.0;
  double posting = 0.0;
  double completing = 0.0;
};

// The place of each block in the memory of the source or of the destination, the same at both ends.
std::vector<std::uint32_t> block_places(std::size_t count, bool at_source);

// Each block's bytes of the pattern `seed` at its place; `stride` bytes from one place to the next.
void fill_blocks(std::byte* at, const std::vector<std::uint32_t>& places, std::size_t bytes, std::size_t stride,
                 std::uint64_t seed);
// host::Failure with the first block that is not the pattern.
void check_blocks(const std::byte* at, const std::vector<std::uint32_t>& places, std::size_t bytes, std::size_t stride,
                  std::uint64_t seed);

}  // namespace lanewise::network
