// CRC-32 as zlib and PNG have it, so that any tool can check an answer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lanewise::loadtest {

std::uint32_t crc32(const std::byte* data, std::size_t bytes) noexcept;

}  // namespace lanewise::loadtest
