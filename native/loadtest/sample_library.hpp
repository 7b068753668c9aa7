// The samples in host memory: as many as a run uses at once, one copy a NUMA node that devices read from.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "loadtest/system.hpp"

namespace lanewise::loadtest {

// Memory with whoever frees it.
struct Block {
  std::byte* data = nullptr;
  std::shared_ptr<const void> keeper;
};
using Allocate = std::function<Block(std::size_t bytes, int node)>;

// Writes a sample's bytes; host::Failure where it cannot be read.
using Fill = std::function<void(std::uint64_t sample, std::span<std::byte> into)>;

// Bytes that tell samples, and places within one, apart.
void fill_synthetic(std::uint64_t sample, std::span<std::byte> into);

class SampleLibrary {
 public:
  static constexpr std::uint32_t kNotLoaded = UINT32_MAX;

  // Of a data set of `samples`, `resident` are in memory at once, `bytes` each.
  SampleLibrary(std::size_t samples, std::size_t resident, std::size_t bytes, Allocate allocate, Fill fill);
  // Memory that somebody else fills: sample i is the content of its slot i, always loaded.
  static SampleLibrary of_slots(std::size_t slots, std::size_t bytes, Allocate allocate);

  std::size_t bytes() const { return bytes_; }
  // From one sample to the next, in memory and in a device's buffer: kernels read 16 bytes at once.
  static std::size_t stride_of(std::size_t bytes) { return (bytes + 15) / 16 * 16; }
  std::size_t stride() const { return stride_of(bytes_); }
  std::size_t resident() const { return resident_; }
  std::size_t samples() const { return slots_.size(); }

  // The copy on a node, made at the first call for it, before anything is loaded.
  const std::byte* on(int node);

  void load(std::span<const std::uint64_t> samples);
  void unload(std::span<const std::uint64_t> samples);

  // The position of a sample, in strides; kNotLoaded.
  std::uint32_t slot(std::uint64_t sample) const noexcept {
    return sample < slots_.size() ? slots_[sample] : kNotLoaded;
  }

 private:
  struct Copy {
    int node;
    Block block;
  };

  void check(std::uint64_t sample) const;

  std::vector<std::uint32_t> slots_;  // by sample
  std::vector<std::uint32_t> free_;
  std::vector<Copy> copies_;
  std::size_t resident_;
  std::size_t bytes_;
  Allocate allocate_;
  Fill fill_;
};

}  // namespace lanewise::loadtest
