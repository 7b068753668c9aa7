#include "loadtest/crc32.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lanewise::loadtest {

namespace {

constexpr std::uint32_t kPolynomial = 0xEDB88320;
using Table = std::array<std::array<std::uint32_t, 256>, 8>;

// Row k: what a byte becomes that k bytes follow.
constexpr Table make_table() {
  Table table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[0][i] = value;
  }
  for (std::size_t k = 1; k < table.size(); ++k) {
    for (std::size_t i = 0; i < 256; ++i) table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xFF];
  }
  return table;
}

constexpr Table kTable = make_table();
static_assert(std::endian::native == std::endian::little);

// Goes on from the state `crc`, which is neither inverted at the begin nor at the end.
std::uint32_t by_table(std::uint32_t crc, const std::byte* data, std::size_t bytes) noexcept {
  for (; bytes >= 8; data += 8, bytes -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    word ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTable[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; bytes > 0; ++data, --bytes) crc = (crc >> 8) ^ kTable[0][(crc ^ std::to_integer<std::uint32_t>(*data)) & 0xFF];
  return crc;
}

#if defined(__x86_64__)
#define LANEWISE_FOLDING __attribute__((target("pclmul,sse4.1")))
constexpr std::size_t kBlock = 16, kBlocks = 4;

// x moved by as many bits as `factors` were computed for, plus the data at its new place.
LANEWISE_FOLDING inline __m128i fold(__m128i x, __m128i factors, __m128i there) {
  const __m128i low = _mm_clmulepi64_si128(x, factors, 0x00), high = _mm_clmulepi64_si128(x, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), there);
}

LANEWISE_FOLDING inline __m128i load(const std::byte* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

// The same by carry-less multiplication, for a multiple of 64 bytes: four blocks side by side, each folded over the
// next 512 bits, at last one over the other; the rest of 16 bytes is a message of the same CRC (Gopal et al., Fast CRC
// Computation for Generic Polynomials Using PCLMULQDQ Instruction, Intel 2009).
LANEWISE_FOLDING std::uint32_t by_folding(std::uint32_t crc, const std::byte* data, std::size_t bytes) noexcept {
  // x^(512+32), x^(512-32) and x^(128+32), x^(128-32) modulo the polynomial, bits reversed.
  const __m128i over_four = _mm_set_epi64x(0x1C6E41596, 0x154442BD4),
                over_one = _mm_set_epi64x(0x0CCAA009E, 0x1751997D0);
  __m128i x[kBlocks];
  for (std::size_t i = 0; i < kBlocks; ++i) x[i] = load(data + i * kBlock);
  x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128(static_cast<int>(crc)));
  for (data += kBlocks * kBlock, bytes -= kBlocks * kBlock; bytes > 0;
       data += kBlocks * kBlock, bytes -= kBlocks * kBlock) {
    for (std::size_t i = 0; i < kBlocks; ++i) x[i] = fold(x[i], over_four, load(data + i * kBlock));
  }
  for (std::size_t i = 1; i < kBlocks; ++i) x[i] = fold(x[i - 1], over_one, x[i]);
  std::array<std::byte, kBlock> rest;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest.data()), x[kBlocks - 1]);
  return by_table(0, rest.data(), rest.size());
}
#endif

}  // namespace

std::uint32_t crc32(const std::byte* data, std::size_t bytes) noexcept {
  std::uint32_t crc = 0xFFFFFFFF;
#if defined(__x86_64__)
  static const bool folds = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  if (const std::size_t whole = bytes / (kBlocks * kBlock) * (kBlocks * kBlock); folds && whole > 0) {
    crc = by_folding(crc, data, whole);
    data += whole;
    bytes -= whole;
  }
#endif
  return ~by_table(crc, data, bytes);
}

}  // namespace lanewise::loadtest
