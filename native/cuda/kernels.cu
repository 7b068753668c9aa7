// Kernels of the CUDA part. make_ptx.py compiles them to kernels.ptx, which is what the library carries.
#include "pattern.hpp"

using lanewise::cuda::pattern_byte;
using lanewise::cuda::pattern_word;

namespace {

__device__ inline unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ inline unsigned long long thread_index() {
  return static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ inline unsigned long long thread_count() {
  return static_cast<unsigned long long>(gridDim.x) * blockDim.x;
}

enum : unsigned { kEach = 4 };  // vectors that a thread loads before it stores the first

// Copies a thread's vectors of a block's part: `first` and each blockDim.x further, as far as there are `vectors`.
__device__ inline void copy_part(uint4* to, const uint4* from, unsigned long long first, unsigned long long vectors) {
  uint4 values[kEach];
#pragma unroll
  for (unsigned k = 0; k < kEach; ++k) {
    const unsigned long long i = first + k * blockDim.x;
    if (i < vectors) values[k] = from[i];
  }
#pragma unroll
  for (unsigned k = 0; k < kEach; ++k) {
    const unsigned long long i = first + k * blockDim.x;
    if (i < vectors) to[i] = values[k];
  }
}

}  // namespace

// Holds its stream until `*open` (pinned host memory) is not 0. After `most_ns` it gives up and says so.
extern "C" __global__ void lanewise_spin(const volatile unsigned* open, volatile unsigned* timed_out,
                                         unsigned long long most_ns) {
  const unsigned long long start = nanoseconds();
  while (*open == 0) {
    if (nanoseconds() - start > most_ns) {
      *timed_out = 1;
      __threadfence_system();
      return;
    }
  }
}

// Keeps its stream busy for `ns`: a service time without a model. One thread of one multiprocessor, so that copies by
// kernels go on beside it.
extern "C" __global__ void lanewise_hold(unsigned long long ns) {
  const unsigned long long start = nanoseconds();
  while (nanoseconds() - start < ns) {
  }
}

// Copies `bytes`, `passes` times; both addresses on 16 bytes. A thread's loads go out together before the first store
// waits for one.
extern "C" __global__ void lanewise_copy(uint4* to, const uint4* from, unsigned long long bytes, unsigned passes) {
  constexpr unsigned kInFlight = 8;  // 16-byte loads a thread has under way: enough for PCIe and NVLink latencies
  const unsigned long long vectors = bytes / sizeof(uint4);
  const unsigned long long threads = thread_count();
  for (unsigned pass = 0; pass < passes; ++pass) {
    unsigned long long i = thread_index();
    for (; i + (kInFlight - 1) * threads < vectors; i += kInFlight * threads) {
      uint4 held[kInFlight];
#pragma unroll
      for (unsigned k = 0; k < kInFlight; ++k) held[k] = from[i + k * threads];
#pragma unroll
      for (unsigned k = 0; k < kInFlight; ++k) to[i + k * threads] = held[k];
    }
    for (; i < vectors; i += threads) to[i] = from[i];
  }

  const unsigned long long rest = vectors * sizeof(uint4) + thread_index();
  if (rest < bytes) reinterpret_cast<char*>(to)[rest] = reinterpret_cast<const char*>(from)[rest];
}

// Copies `bytes` one way and as many the other, `passes` times; all addresses on 16 bytes. Every thread copies both
// ways in turn: writes to the host, which wait for nothing, would otherwise crowd out the requests of its reads.
extern "C" __global__ void lanewise_copy_both(uint4* to, const uint4* from, uint4* back_to, const uint4* back_from,
                                              unsigned long long bytes, unsigned passes) {
  constexpr unsigned kInFlight = 4;  // each way
  const unsigned long long vectors = bytes / sizeof(uint4);
  const unsigned long long threads = thread_count();
  for (unsigned pass = 0; pass < passes; ++pass) {
    unsigned long long i = thread_index();
    for (; i + (kInFlight - 1) * threads < vectors; i += kInFlight * threads) {
      uint4 held[kInFlight], back[kInFlight];
#pragma unroll
      for (unsigned k = 0; k < kInFlight; ++k) held[k] = from[i + k * threads];
#pragma unroll
      for (unsigned k = 0; k < kInFlight; ++k) back[k] = back_from[i + k * threads];
#pragma unroll
      for (unsigned k = 0; k < kInFlight; ++k) back_to[i + k * threads] = back[k];
#pragma unroll
      for (unsigned k = 0; k < kInFlight; ++k) to[i + k * threads] = held[k];
    }
    for (; i < vectors; i += threads) {
      to[i] = from[i];
      back_to[i] = back_from[i];
    }
  }

  const unsigned long long rest = vectors * sizeof(uint4) + thread_index();
  if (rest >= bytes) return;
  reinterpret_cast<char*>(to)[rest] = reinterpret_cast<const char*>(from)[rest];
  reinterpret_cast<char*>(back_to)[rest] = reinterpret_cast<const char*>(back_from)[rest];
}

// Gathers sample picks[blockIdx.y] of `library` into slot blockIdx.y of `to`; samples are whole numbers of vectors.
extern "C" __global__ void lanewise_gather(uint4* to, const uint4* library, const unsigned* picks,
                                           unsigned long long vectors) {
  const uint4* from = library + picks[blockIdx.y] * vectors;
  uint4* slot = to + blockIdx.y * vectors;
  copy_part(slot, from, static_cast<unsigned long long>(blockIdx.x) * blockDim.x * kEach + threadIdx.x, vectors);
}

// Copies piece from_places[i] of `from` to place to_places[i] of `to` for each of `count`; pieces are whole numbers of
// vectors. The blocks take parts of pieces in turn, so that few long pieces keep all of them at work too.
extern "C" __global__ void lanewise_copy_pieces(uint4* to, const uint4* from, const unsigned* to_places,
                                                const unsigned* from_places, unsigned long long count,
                                                unsigned long long vectors) {
  const unsigned long long part = blockDim.x * kEach;
  const unsigned long long parts = (vectors + part - 1) / part;
  for (unsigned long long k = blockIdx.x; k < parts * count; k += gridDim.x) {
    const unsigned long long piece = k / parts;
    copy_part(to + to_places[piece] * vectors, from + from_places[piece] * vectors, k % parts * part + threadIdx.x,
              vectors);
  }
}

// Fills `bytes` at `at` (on 8 bytes) with the pattern of `seed`.
extern "C" __global__ void lanewise_fill(unsigned long long* at, unsigned long long bytes, unsigned long long seed) {
  const unsigned long long words = bytes / 8;
  for (unsigned long long i = thread_index(); i < words; i += thread_count()) at[i] = pattern_word(seed, i);
  const unsigned long long rest = words * 8 + thread_index();
  if (rest < bytes) reinterpret_cast<unsigned char*>(at)[rest] = pattern_byte(seed, rest);
}

// Lowers *first to the offset of the first byte at `at` (on 8 bytes) that differs from the pattern of `seed`.
extern "C" __global__ void lanewise_compare(const unsigned long long* at, unsigned long long bytes,
                                            unsigned long long seed, unsigned long long* first) {
  const unsigned long long words = bytes / 8;
  for (unsigned long long i = thread_index(); i < words; i += thread_count()) {
    const unsigned long long wrong = at[i] ^ pattern_word(seed, i);
    if (wrong == 0) continue;
    atomicMin(first, i * 8 + (__ffsll(static_cast<long long>(wrong)) - 1) / 8);
    break;  // this thread's later words lie behind
  }
  const unsigned long long rest = words * 8 + thread_index();
  if (rest < bytes && reinterpret_cast<const unsigned char*>(at)[rest] != pattern_byte(seed, rest)) {
    atomicMin(first, rest);
  }
}

// Block `chaser` of the grid, and so one multiprocessor, follows `steps` pointers; where it ended goes to *end, so that
// no compiler may drop the loads.
extern "C" __global__ void lanewise_chase(void** start, unsigned long long steps, unsigned chaser, void*** end) {
  if (blockIdx.x != chaser) return;
  void** at = start;
  for (unsigned long long i = 0; i < steps; ++i) at = static_cast<void**>(*at);
  *end = at;
}
