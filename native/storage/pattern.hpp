// Data that encodes its position, so that a byte read from the wrong place, or not at all, is detected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "storage/layout.hpp"

namespace lanewise::storage {

constexpr std::uint64_t kWord = 8;
constexpr std::uint64_t kStampEvery = 4096;

// The word that belongs at `place` of file `file`: it neither repeats nor shrinks when compressed.
inline std::uint64_t key(std::uint64_t file, std::uint64_t place) {
  std::uint64_t x = place + (file + 1) * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

// Every word is a hash of its file and offset: the content of test files.
inline void fill(std::byte* buffer, const Piece& piece, std::uint64_t salt) {
  for (std::uint64_t i = 0; i < piece.bytes; i += kWord) {
    const std::uint64_t word = key(piece.file + salt, piece.offset + i);
    std::memcpy(buffer + piece.at + i, &word, kWord);
  }
}

// One word of each page keyed so, which costs next to nothing while writing is timed; the others are as laid out by
// blank(), by their place in the buffer.
inline void stamp(std::byte* buffer, const Piece& piece, std::uint64_t salt) {
  const std::uint64_t first = (kStampEvery - piece.offset % kStampEvery) % kStampEvery;
  for (std::uint64_t i = first; i < piece.bytes; i += kStampEvery) {
    const std::uint64_t word = key(piece.file + salt, piece.offset + i);
    std::memcpy(buffer + piece.at + i, &word, kWord);
  }
}

constexpr std::uint64_t kNoFile = ~std::uint64_t{0} >> 1;

inline void blank(std::byte* buffer, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at + kWord <= bytes; at += kWord) {
    const std::uint64_t word = key(kNoFile, at);
    std::memcpy(buffer + at, &word, kWord);
  }
}

// How many bytes of the piece are right from its start on, of data that was filled or stamped.
inline std::uint64_t right(const std::byte* buffer, const Piece& piece, std::uint64_t salt, bool stamped) {
  for (std::uint64_t i = 0; i < piece.bytes; i += kWord) {
    const bool keyed = !stamped || (piece.offset + i) % kStampEvery == 0;
    const std::uint64_t expected = keyed ? key(piece.file + salt, piece.offset + i) : key(kNoFile, piece.at + i);
    if (std::memcmp(buffer + piece.at + i, &expected, kWord) != 0) return i;
  }
  return piece.bytes;
}

}  // namespace lanewise::storage
