#include "loadtest/sample_library.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "cuda/pattern.hpp"
#include "host/failure.hpp"

namespace lanewise::loadtest {

void fill_synthetic(std::uint64_t sample, std::span<std::byte> into) {
  const unsigned long long seed = cuda::pattern_word(sample, 0);
  for (std::size_t i = 0; i < into.size(); i += 8) {
    const unsigned long long word = cuda::pattern_word(seed, i / 8);
    std::memcpy(into.data() + i, &word, std::min<std::size_t>(8, into.size() - i));
  }
}

SampleLibrary::SampleLibrary(std::size_t samples, std::size_t resident, std::size_t bytes, Allocate allocate, Fill fill)
    : slots_(samples, kNotLoaded),
      resident_(resident),
      bytes_(bytes),
      allocate_(std::move(allocate)),
      fill_(std::move(fill)) {
  if (samples == 0 || resident == 0 || bytes == 0)
    throw host::Failure("a library without samples", "take at least one");
  if (resident >= kNotLoaded) throw host::Failure("a library of too many samples", "take less than 2^32 - 1");
  free_.reserve(resident);
  for (std::size_t slot = resident; slot-- > 0;) free_.push_back(static_cast<std::uint32_t>(slot));
}

SampleLibrary SampleLibrary::of_slots(std::size_t slots, std::size_t bytes, Allocate allocate) {
  SampleLibrary library(slots, slots, bytes, std::move(allocate), [](std::uint64_t, std::span<std::byte>) {});
  std::iota(library.slots_.begin(), library.slots_.end(), 0U);
  library.free_.clear();
  return library;
}

const std::byte* SampleLibrary::on(int node) {
  for (const Copy& copy : copies_) {
    if (copy.node == node) return copy.block.data;
  }
  return copies_.emplace_back(Copy{node, allocate_(resident_ * stride(), node)}).block.data;
}

void SampleLibrary::check(std::uint64_t sample) const {
  if (sample < slots_.size()) return;
  throw host::Failure("no sample " + std::to_string(sample) + " in a data set of " + std::to_string(slots_.size()),
                      "samples count from 0");
}

void SampleLibrary::load(std::span<const std::uint64_t> samples) {
  for (const std::uint64_t sample : samples) {
    check(sample);
    if (slots_[sample] != kNotLoaded) continue;
    if (free_.empty()) {
      throw host::Failure("more samples to load than the library's " + std::to_string(resident_),
                          "make the library larger, or let the generator use fewer samples");
    }
    const std::uint32_t slot = free_.back();
    for (const Copy& copy : copies_) {
      std::byte* const to = copy.block.data + slot * stride();
      if (&copy == &copies_.front()) {
        fill_(sample, {to, bytes_});
      } else {
        std::memcpy(to, copies_.front().block.data + slot * stride(), bytes_);
      }
    }
    free_.pop_back();
    slots_[sample] = slot;
  }
}

void SampleLibrary::unload(std::span<const std::uint64_t> samples) {
  for (const std::uint64_t sample : samples) {
    check(sample);
    if (slots_[sample] == kNotLoaded) continue;
    free_.push_back(std::exchange(slots_[sample], kNotLoaded));
  }
}

}  // namespace lanewise::loadtest
