// Where time goes in the system under test: histograms by stage, and the first batches one by one. A query's time ends
// when its answer is handed to the load generator's side, before LoadGen's completion call: its latency is longer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "loadtest/latencies.hpp"
#include "loadtest/query_ring.hpp"

namespace lanewise::loadtest {

// Stages of a query in the system, in their order, then all of them.
enum QueryStage : std::size_t { kQueued, kCopied, kInferred, kAnswered, kTotal, kStageCount };
constexpr std::array<const char*, kStageCount> kStageNames{"queue", "copy", "infer", "answer", "total"};

// When a batch got where; ns.
struct BatchTimes {
  std::int64_t batched = 0;
  std::int64_t copied = 0;
  std::int64_t inferred = 0;
  std::int64_t completed = 0;
};

// What came of some batches. Python: lanewise.loadtest.system.SystemStatistics.
struct Statistics {
  explicit Statistics(std::size_t batch) : sizes(batch + 1) {}
  void add(std::span<const QueuedQuery> queries, const BatchTimes& times, std::size_t bytes) noexcept;
  void add(const Statistics& other) noexcept;

  std::array<Latencies, kStageCount> stages;
  std::vector<std::uint64_t> sizes;  // how many batches had so many queries
  std::uint64_t bytes = 0;           // moved to devices
  std::uint64_t failed = 0;          // queries answered with nothing, as the system had failed
};

// A thread's statistics, to be read while it goes on.
class GuardedStatistics {
 public:
  explicit GuardedStatistics(std::size_t batch) : statistics_(batch) {}
  template <class Change>
  void change(Change&& how) {
    const std::scoped_lock lock(mutex_);
    how(statistics_);
  }

 private:
  std::mutex mutex_;
  Statistics statistics_;
};

struct TracedBatch {
  std::size_t queue = 0;
  std::size_t stream = 0;
  BatchTimes times;
  std::vector<std::int64_t> arrived;  // of each query
};

// The first batches of a run; memory for them is taken before it.
class Trace {
 public:
  Trace(std::size_t batches, std::size_t batch);
  void clear() noexcept { used_ = 0; }
  void add(std::size_t queue, std::size_t stream, std::span<const QueuedQuery> queries,
           const BatchTimes& times) noexcept;
  // Those there are; between runs.
  std::vector<TracedBatch> batches() const;

 private:
  std::vector<TracedBatch> batches_;
  std::atomic<std::size_t> used_ = 0;
};

}  // namespace lanewise::loadtest
