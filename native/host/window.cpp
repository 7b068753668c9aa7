#include "host/window.hpp"

#include <algorithm>
#include <limits>

namespace lanewise::host {

namespace {

// Blocks done between the first timestamp and `time`, in parts of a block.
double blocks_at(const Timestamps& timestamps, double time) {
  const auto after = std::ranges::upper_bound(timestamps, time);
  if (after == timestamps.begin()) return 0.0;
  const auto whole = static_cast<double>(after - timestamps.begin() - 1);
  if (after == timestamps.end()) return whole;
  const double before = *(after - 1);
  return whole + (time - before) / (*after - before);
}

}  // namespace

Window common_window(const std::vector<Timestamps>& timestamps, double block_bytes) {
  Window window;
  double begin = -std::numeric_limits<double>::infinity();
  double end = std::numeric_limits<double>::infinity();
  for (const Timestamps& thread : timestamps) {
    if (thread.size() < 2) return window;
    begin = std::max(begin, thread.front());
    end = std::min(end, thread.back());
  }
  if (timestamps.empty() || end <= begin) return window;
  window.seconds = end - begin;
  for (const Timestamps& thread : timestamps) {
    window.bytes.push_back(block_bytes * (blocks_at(thread, end) - blocks_at(thread, begin)));
  }
  return window;
}

}  // namespace lanewise::host
