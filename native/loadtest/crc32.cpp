#include "loadtest/crc32.hpp"

#include <array>
#include <bit>
#include <cstring>

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

}  // namespace

std::uint32_t crc32(const std::byte* data, std::size_t bytes) noexcept {
  std::uint32_t crc = 0xFFFFFFFF;
  for (; bytes >= 8; data += 8, bytes -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    word ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTable[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; bytes > 0; ++data, --bytes) crc = (crc >> 8) ^ kTable[0][(crc ^ std::to_integer<std::uint32_t>(*data)) & 0xFF];
  return ~crc;
}

}  // namespace lanewise::loadtest
