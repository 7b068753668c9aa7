#include "loadtest/statistics.hpp"

#include <algorithm>

namespace lanewise::loadtest {

namespace {

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

void Statistics::add(std::span<const QueuedQuery> queries, const BatchTimes& times, std::size_t moved) noexcept {
  const std::size_t count = queries.size();
  for (const QueuedQuery& query : queries) {
    stages[kQueued].add(seconds(times.batched - query.arrived));
    stages[kTotal].add(seconds(times.completed - query.arrived));
  }
  stages[kCopied].add(seconds(times.copied - times.batched), count);
  stages[kInferred].add(seconds(times.inferred - times.copied), count);
  stages[kAnswered].add(seconds(times.completed - times.inferred), count);
  ++sizes[count];
  bytes += moved;
}

void Statistics::add(const Statistics& other) noexcept {
  for (std::size_t i = 0; i < kStageCount; ++i) stages[i].add(other.stages[i]);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] += other.sizes[i];
  bytes += other.bytes;
  failed += other.failed;
}

Trace::Trace(std::size_t batches, std::size_t batch) : batches_(batches) {
  for (TracedBatch& each : batches_) each.arrived.reserve(batch);
}

void Trace::add(std::size_t queue, std::size_t stream, std::span<const QueuedQuery> queries,
                const BatchTimes& times) noexcept {
  if (used_.load(std::memory_order_relaxed) >= batches_.size()) return;
  const std::size_t at = used_.fetch_add(1, std::memory_order_relaxed);
  if (at >= batches_.size()) return;
  TracedBatch& into = batches_[at];
  into.queue = queue;
  into.stream = stream;
  into.times = times;
  into.arrived.clear();
  for (const QueuedQuery& query : queries) into.arrived.push_back(query.arrived);  // within what was reserved
}

std::vector<TracedBatch> Trace::batches() const {
  const auto used = static_cast<std::ptrdiff_t>(std::min(used_.load(), batches_.size()));
  return {batches_.begin(), batches_.begin() + used};
}

}  // namespace lanewise::loadtest
