#include "loadtest/record.hpp"

#include <algorithm>

namespace lanewise::loadtest {

void Tally::add(std::span<const Arrived> queries, const Stamps& stamps, std::size_t moved) noexcept {
  const std::size_t count = queries.size();
  for (const Arrived& query : queries) {
    stages[kQueued].add(stamps.batched - query.at);
    stages[kTotal].add(stamps.completed - query.at);
  }
  stages[kCopied].add(stamps.copied - stamps.batched, count);
  stages[kInferred].add(stamps.inferred - stamps.copied, count);
  stages[kAnswered].add(stamps.completed - stamps.inferred, count);
  ++sizes[count];
  bytes += moved;
}

void Tally::add(const Tally& other) noexcept {
  for (std::size_t i = 0; i < kStagesOf; ++i) stages[i].add(other.stages[i]);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] += other.sizes[i];
  bytes += other.bytes;
  failed += other.failed;
}

Trace::Trace(std::size_t batches, std::size_t batch) : batches_(batches) {
  for (TracedBatch& each : batches_) each.arrived.reserve(batch);
}

void Trace::add(std::size_t queue, std::size_t stream, std::span<const Arrived> queries, const Stamps& stamps) noexcept {
  if (used_.load(std::memory_order_relaxed) >= batches_.size()) return;
  const std::size_t at = used_.fetch_add(1, std::memory_order_relaxed);
  if (at >= batches_.size()) return;
  TracedBatch& into = batches_[at];
  into.queue = queue;
  into.stream = stream;
  into.stamps = stamps;
  into.arrived.clear();
  for (const Arrived& query : queries) into.arrived.push_back(query.at);  // within what was reserved
}

std::vector<TracedBatch> Trace::batches() const {
  const auto used = static_cast<std::ptrdiff_t>(std::min(used_.load(), batches_.size()));
  return {batches_.begin(), batches_.begin() + used};
}

}  // namespace lanewise::loadtest
