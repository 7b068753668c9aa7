// A node's system that only looks at what arrived: it answers every query at once with the CRC-32 of its slot. So tests
// and benchmarks of the dispatch see every byte, and no queue or engine.
#pragma once

#include <vector>

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
    for (const loadtest::Query& query : queries) {
      const std::uint32_t sum = loadtest::crc32(memory_->data() + query.sample * stride_, bytes_);
      const loadtest::Answer answer{query.id, reinterpret_cast<const std::byte*>(&sum), sizeof sum};
      answer_({&answer, 1});
    }
  }
  void flush() override {}
  void stop() override {}

 private:
  SharedMemoryPointer memory_;
  std::size_t bytes_, stride_;
  loadtest::AnswerCallback answer_;
};

}  // namespace lanewise::dispatch
