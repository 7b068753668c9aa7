// Carries answers from the threads of a system under test to the one thread that tells LoadGen.
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

class Answerer {
 public:
  // `tell` gets all that arrived since its last call; `keep_data` copies what the answers hold.
  Answerer(std::function<void(Responses&)> tell, bool keep_data) : tell_(std::move(tell)), keep_data_(keep_data) {}
  void loop();  // until close()
  void put(std::span<const loadtest::Answer> answers);
  // From now on answers are dropped; returns when none is being told any more.
  void close();

 private:
  struct Batch {
    Responses responses;  // `data` is an offset in `bytes` until the batch is taken
    std::vector<std::byte> bytes;
  };

  void wait(std::unique_lock<std::mutex>& held);

  const std::function<void(Responses&)> tell_;
  const bool keep_data_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Batch waiting_;
  std::chrono::steady_clock::time_point last_{};  // when the last batch was taken
  bool idle_ = false;
  bool telling_ = false;
  bool closed_ = false;
};

}  // namespace lanewise::loadgen
