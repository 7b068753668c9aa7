#include "host/window.hpp"

#include <algorithm>
#include <limits>

namespace lanewise::host {

namespace {

// Blocks done between the first mark and `time`, in parts of a block.
double blocks_at(const Marks& marks, double time) {
  const auto after = std::upper_bound(marks.begin(), marks.end(), time);
  if (after == marks.begin()) return 0.0;
  const auto whole = static_cast<double>(after - marks.begin() - 1);
  if (after == marks.end()) return whole;
  const double before = *(after - 1);
  return whole + (time - before) / (*after - before);
}

}  // namespace

Window common_window(const std::vector<Marks>& marks, double block_bytes) {
  Window window;
  double begin = -std::numeric_limits<double>::infinity();
  double end = std::numeric_limits<double>::infinity();
  for (const Marks& each : marks) {
    if (each.size() < 2) return window;
    begin = std::max(begin, each.front());
    end = std::min(end, each.back());
  }
  if (marks.empty() || end <= begin) return window;
  window.seconds = end - begin;
  for (const Marks& each : marks) {
    window.bytes.push_back(block_bytes * (blocks_at(each, end) - blocks_at(each, begin)));
  }
  return window;
}

}  // namespace lanewise::host
