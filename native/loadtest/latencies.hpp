// Latencies of queries: a histogram and their mean.
#pragma once

#include <cstdint>

#include "serve/histogram.hpp"

namespace lanewise::loadtest {

class Latencies {
 public:
  void add(double seconds, std::uint64_t times = 1) noexcept {
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

}  // namespace lanewise::loadtest
