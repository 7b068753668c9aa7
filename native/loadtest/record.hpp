// Where time goes between a query's arrival and its answer: histograms by stage, and the first batches one by one.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "loadtest/query_ring.hpp"
#include "serve/histogram.hpp"

namespace lanewise::loadtest {

// Stages of a query in the system, in their order, then all of them.
enum StageOf : std::size_t { kQueued, kCopied, kInferred, kAnswered, kTotal, kStagesOf };
constexpr std::array<const char*, kStagesOf> kStageNames{"queue", "copy", "infer", "answer", "total"};

// When a batch got where; ns.
struct Stamps {
  std::int64_t batched = 0;
  std::int64_t copied = 0;
  std::int64_t inferred = 0;
  std::int64_t completed = 0;
};

// Latencies of one stage.
class Latencies {
 public:
  void add(std::int64_t ns, std::uint64_t times = 1) noexcept {
    const double seconds = static_cast<double>(ns) * 1e-9;
    histogram_.add(seconds, times);
    sum_ += seconds * static_cast<double>(times);
  }
  void add(const Latencies& other) noexcept {
    histogram_.add(other.histogram_);
    sum_ += other.sum_;
  }
  const serve::Histogram& histogram() const { return histogram_; }
  double mean() const { return count() == 0 ? 0.0 : sum_ / static_cast<double>(count()); }
  std::int64_t count() const { return histogram_.count(); }

 private:
  serve::Histogram histogram_;
  double sum_ = 0;
};

// What came of some batches.
struct Tally {
  explicit Tally(std::size_t batch) : sizes(batch + 1) {}
  void add(std::span<const Arrived> queries, const Stamps& stamps, std::size_t bytes) noexcept;
  void add(const Tally& other) noexcept;

  std::array<Latencies, kStagesOf> stages;
  std::vector<std::uint64_t> sizes;  // how many batches had so many queries
  std::uint64_t bytes = 0;           // moved to devices
  std::uint64_t failed = 0;          // queries answered with nothing, as the system had failed
};

// A worker's tally, to be read while it goes on.
class Record {
 public:
  explicit Record(std::size_t batch) : tally_(batch) {}
  template <class Change>
  void change(Change&& how) {
    const std::scoped_lock turn(turn_);
    how(tally_);
  }

 private:
  std::mutex turn_;
  Tally tally_;
};

struct TracedBatch {
  std::size_t queue = 0;
  std::size_t stream = 0;
  Stamps stamps;
  std::vector<std::int64_t> arrived;  // of each query
};

// The first batches of a run; memory for them is taken before it.
class Trace {
 public:
  Trace(std::size_t batches, std::size_t batch);
  void clear() noexcept { used_ = 0; }
  void add(std::size_t queue, std::size_t stream, std::span<const Arrived> queries, const Stamps& stamps) noexcept;
  // Those there are; between runs.
  std::vector<TracedBatch> batches() const;

 private:
  std::vector<TracedBatch> batches_;
  std::atomic<std::size_t> used_ = 0;
};

}  // namespace lanewise::loadtest
