// Where the bytes of an I/O are: a volume is one or several files, striped as RAID-0 does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lanewise::storage {

// A part of one I/O: `bytes` of a file from `offset` on belong at `at` of the I/O's buffer.
struct Piece {
  std::uint32_t file;  // counted over all files of all volumes
  std::uint64_t offset;
  std::uint64_t at;
  std::uint64_t bytes;
};

struct Volume {
  std::vector<std::uint32_t> files;
  std::uint64_t stripe = 0;   // contiguous bytes in a file; no meaning for a single file
  std::uint64_t bytes = 0;    // of data, all files together
  std::vector<Piece> chunks;  // of a load: the I/Os themselves, each a piece of a file of at most one I/O

  // The pieces of `bytes` from `offset` of the volume on, in the order of the buffer.
  void pieces(std::uint64_t offset, std::uint64_t bytes_wanted, std::vector<Piece>& into) const {
    into.clear();
    if (!chunks.empty()) {
      into.push_back(chunks[offset / bytes_wanted]);
      return;
    }
    if (files.size() == 1) {
      into.push_back({files.front(), offset, 0, bytes_wanted});
      return;
    }
    for (std::uint64_t at = 0; at < bytes_wanted;) {
      const std::uint64_t stripes = (offset + at) / stripe, within = (offset + at) % stripe;
      const std::uint64_t piece_bytes = std::min(stripe - within, bytes_wanted - at);
      into.push_back({files[stripes % files.size()], stripes / files.size() * stripe + within, at, piece_bytes});
      at += piece_bytes;
    }
  }
};

// A pseudo-random permutation of 0 .. count-1: each I/O is issued once, whatever the order. Four rounds of a
// Feistel network over the next power of four; what falls outside is encrypted again until it falls inside.
class Shuffle {
 public:
  Shuffle(std::uint64_t count, std::uint64_t seed) : count_(count), seed_(seed) {
    while (half_ < 32 && (std::uint64_t{1} << (2 * half_)) < count) ++half_;
  }

  std::uint64_t operator()(std::uint64_t index) const {
    do {
      index = encrypt(index);
    } while (index >= count_);
    return index;
  }

 private:
  std::uint64_t encrypt(std::uint64_t value) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_) - 1;
    std::uint64_t left = value >> half_, right = value & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      std::uint64_t mixed = (right + seed_ + round) * 0x9E3779B97F4A7C15U;
      mixed ^= mixed >> 29;
      mixed *= 0xBF58476D1CE4E5B9U;
      const std::uint64_t next = left ^ ((mixed >> 32) & mask);
      left = right;
      right = next;
    }
    return (left << half_) | right;
  }

  std::uint64_t count_;
  std::uint64_t seed_;
  unsigned half_ = 1;
};

}  // namespace lanewise::storage
