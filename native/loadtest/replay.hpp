// Replays a schedule without a load generator: queries at given times from a thread of its own, every answer noted. The
// prediction before a search times batches with it, as do tests and benchmarks.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "loadtest/system.hpp"

namespace lanewise::loadtest {

struct ReplayOptions {
  bool coalesce = false;  // issue what is due together in one call
  bool flush = true;      // when all are issued
  bool keep = false;      // the answers' data
  double limit = 60;      // s from the last issue to the last answer
};

// By query; times in ns from the begin.
struct ReplayResult {
  std::vector<std::int64_t> scheduled;
  std::vector<std::int64_t> issued;
  std::vector<std::int64_t> answered;  // -1: never
  std::vector<std::uint32_t> answers;  // how many each got
  std::vector<std::string> data;
  std::string failure;  // what stop() threw, and its hint
  std::string hint;
};

// Starts the system, issues sample i at `scheduled[i]` (ascending), waits for the answers, stops it. `look` is called
// several times a second by the calling thread; what it throws ends the run.
ReplayResult replay(SystemUnderTest& system, std::vector<std::int64_t> scheduled,
                    std::span<const std::uint64_t> samples, const ReplayOptions& options,
                    const std::function<void()>& look);

}  // namespace lanewise::loadtest
