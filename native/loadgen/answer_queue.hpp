// Carries answers from the threads of a system under test to the one thread that reports them to LoadGen.
#pragma once

#include <query_sample.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "loadtest/system.hpp"

namespace lanewise::loadgen {

using Responses = std::vector<mlperf::QuerySampleResponse>;

class AnswerQueue {
 public:
  // `report` gets all that arrived since its last call; `keep_data` copies what the answers hold.
  AnswerQueue(std::function<void(Responses&)> report, bool keep_data)
      : report_(std::move(report)), keep_data_(keep_data) {}
  void loop();  // until close()
  void put(std::span<const loadtest::Answer> answers);
  // From now on answers are dropped; returns when none is being reported any more.
  void close();

 private:
  struct PendingAnswers {
    Responses responses;  // `data` is an offset in `bytes` until the batch is taken
    std::vector<std::byte> bytes;
  };

  void gather(std::unique_lock<std::mutex>& lock);

  const std::function<void(Responses&)> report_;
  const bool keep_data_;
  std::mutex mutex_;
  std::condition_variable changed_;
  PendingAnswers waiting_;
  std::chrono::steady_clock::time_point last_{};  // when the last batch was taken
  bool idle_ = false;
  bool reporting_ = false;
  bool closed_ = false;
};

}  // namespace lanewise::loadgen
