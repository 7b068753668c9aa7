// Stores past the caches (non-temporal), where the CPU has them: no line is read only to be overwritten.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace lanewise::host {

#if defined(__x86_64__)
constexpr bool kStreams = true;
constexpr std::size_t kStep = 64;

// One line of 64 bytes; both sides aligned to 16 bytes.
inline void stream_line(std::byte* to, const std::byte* from) {
  auto* out = reinterpret_cast<__m128i*>(to);
  const auto* in = reinterpret_cast<const __m128i*>(from);
  const __m128i a = _mm_load_si128(in), b = _mm_load_si128(in + 1);
  const __m128i c = _mm_load_si128(in + 2), d = _mm_load_si128(in + 3);
  _mm_stream_si128(out, a);
  _mm_stream_si128(out + 1, b);
  _mm_stream_si128(out + 2, c);
  _mm_stream_si128(out + 3, d);
}

inline void stream_fence() { _mm_sfence(); }
#elif defined(__aarch64__)
constexpr bool kStreams = true;
constexpr std::size_t kStep = 64;

inline void stream_line(std::byte* to, const std::byte* from) {
  const auto* in = reinterpret_cast<const std::uint64_t*>(from);
  for (std::size_t i = 0; i < 8; i += 2) {
    asm volatile("stnp %1, %2, [%0]" : : "r"(to + 8 * i), "r"(in[i]), "r"(in[i + 1]) : "memory");
  }
}

inline void stream_fence() { asm volatile("dmb ishst" : : : "memory"); }
#else
constexpr bool kStreams = false;
constexpr std::size_t kStep = 64;

inline void stream_line(std::byte*, const std::byte*) {}
inline void stream_fence() {}
#endif

}  // namespace lanewise::host
