// The pattern that copies are verified with: byte k of word i depends on the seed and on i, so that a byte that is
// missing, stale or out of place shows. One source for the CPU and the GPU.
#pragma once

#ifdef __CUDACC__
#define LANEWISE_BOTH __device__ inline
#else
#define LANEWISE_BOTH inline
#endif

namespace lanewise::cuda {

// The eight bytes of word `i` (little endian): a multiplicative hash, two rounds.
LANEWISE_BOTH unsigned long long pattern_word(unsigned long long seed, unsigned long long i) {
  unsigned long long x = (seed + i) * 0x9E3779B97F4A7C15ULL;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ULL;
  return x ^ (x >> 32);
}

LANEWISE_BOTH unsigned char pattern_byte(unsigned long long seed, unsigned long long offset) {
  return static_cast<unsigned char>(pattern_word(seed, offset / 8) >> (8 * (offset % 8)));
}

}  // namespace lanewise::cuda
