#include "network/round_trips.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace lanewise::network {

RoundTrips::RoundTrips(std::vector<std::uint64_t> nanoseconds) : sorted_(std::move(nanoseconds)) {
  std::sort(sorted_.begin(), sorted_.end());
}

double RoundTrips::mean() const {
  if (sorted_.empty()) return 0.0;
  const double sum = std::accumulate(sorted_.begin(), sorted_.end(), 0.0, [](double total, std::uint64_t time) {
    return total + static_cast<double>(time);
  });
  return sum / static_cast<double>(sorted_.size()) / 2e3;
}

double RoundTrips::percentile(double share) const {
  if (sorted_.empty()) return 0.0;
  const double rank = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(sorted_.size()));
  const std::size_t at = rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1;
  return static_cast<double>(sorted_[std::min(at, sorted_.size() - 1)]) / 2e3;
}

void Tally::add(std::uint64_t nanoseconds) {
  const std::lock_guard<std::mutex> lock(guard_);
  taken_.push_back(nanoseconds);
}

RoundTrips Tally::take() {
  std::vector<std::uint64_t> out;
  {
    const std::lock_guard<std::mutex> lock(guard_);
    out.swap(taken_);
    taken_.reserve(out.size());
  }
  return RoundTrips(std::move(out));
}

}  // namespace lanewise::network
