// A node's system that only looks at what arrived: it answers every query at once with the CRC-32 of its slot. So tests
// and benchmarks of the dispatch see every byte, and no queue or engine.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "dispatch/shared_memory.hpp"
#include "loadtest/crc32.hpp"
#include "loadtest/system.hpp"

namespace lanewise::dispatch {

class ChecksumSystem : public loadtest::SystemUnderTest {
 public:
  // `bytes` of each slot of `memory`, `stride` apart.
  ChecksumSystem(SharedMemoryPointer memory, std::size_t bytes, std::size_t stride)
      : memory_(std::move(memory)), bytes_(bytes), stride_(stride) {}
  std::string name() const override { return "checksums"; }
  void load(std::span<const std::uint64_t>) override {}
  void unload(std::span<const std::uint64_t>) override {}
  void start(loadtest::AnswerCallback answer) override { answer_ = std::move(answer); }
  void issue(std::span<const loadtest::Query> queries) override {
    std::array<std::uint32_t, kGroup> sums;
    std::array<loadtest::Answer, kGroup> answers;
    while (!queries.empty()) {
      const std::size_t count = std::min(queries.size(), kGroup);
      for (std::size_t i = 0; i < count; ++i) {
        sums[i] = loadtest::crc32(memory_->data() + queries[i].sample * stride_, bytes_);
        answers[i] = {queries[i].id, reinterpret_cast<const std::byte*>(&sums[i]), sizeof sums[i]};
      }
      answer_(std::span(answers).first(count));
      queries = queries.subspan(count);
    }
  }
  void flush() override {}
  void stop() override {}

 private:
  static constexpr std::size_t kGroup = 16;  // answered together: they share a doorbell

  SharedMemoryPointer memory_;
  std::size_t bytes_, stride_;
  loadtest::AnswerCallback answer_;
};

}  // namespace lanewise::dispatch
