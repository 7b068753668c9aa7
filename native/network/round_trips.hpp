// Half round trips, every one of them: their mean and any percentile are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace lanewise::network {

class RoundTrips {
 public:
  RoundTrips() = default;
  explicit RoundTrips(std::vector<std::uint64_t> nanoseconds);  // of whole round trips

  std::size_t count() const { return sorted_.size(); }
  double mean() const;                    // of half a round trip, us
  double percentile(double share) const;  // the smallest half round trip (us) that this share (0 .. 1) does not exceed

 private:
  std::vector<std::uint64_t> sorted_;
};

// Filled by the thread that measures, emptied by the one that reports.
class Tally {
 public:
  void add(std::uint64_t nanoseconds);
  RoundTrips take();

 private:
  std::mutex guard_;
  std::vector<std::uint64_t> taken_;
};

}  // namespace lanewise::network
