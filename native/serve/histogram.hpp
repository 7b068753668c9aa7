// Latencies counted in buckets of equal relative width, as an HDR histogram does: memory does not grow with the run.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace lanewise::serve {

// Stages of a query, in their order. A stage that a service does not have stays at zero.
enum Stage : std::size_t {
  kArriveWait,      // for the connection or copy slot of its own transfer
  kArrive,          // its own transfer, as long as it takes alone
  kArriveLinkWait,  // what sharing adds to that
  kQueue,           // until its batch is formed: filling, time-out, no free slot or buffer
  kCopy,            // the batch's copy, as long as it takes alone
  kLinkWait,        // what sharing adds to that
  kGpuWait,         // until the GPU begins the batch
  kGpu,
  kReturn,
  kStages
};

class Histogram {
 public:
  // Counts a latency in s, `times` times; returns its coarse bucket (one eighth of an octave).
  std::size_t add(double latency, std::uint64_t times = 1) noexcept {
    const std::size_t fine = bucket(latency);
    fine_[fine] += times;
    count_ += static_cast<std::int64_t>(times);
    if (latency > largest_) largest_ = latency;
    return fine >> (kFineBits - kCoarseBits);
  }

  // Counts what another one has counted, without its stages.
  void add(const Histogram& other) noexcept {
    for (std::size_t i = 0; i < fine_.size(); ++i) fine_[i] += other.fine_[i];
    count_ += other.count_;
    if (other.largest_ > largest_) largest_ = other.largest_;
  }

  void add_stages(std::size_t coarse, const double (&seconds)[kStages], double samples) noexcept {
    Coarse& into = coarse_[coarse];
    into.samples += samples;
    for (std::size_t stage = 0; stage < kStages; ++stage) into.seconds[stage] += seconds[stage];
  }

  std::int64_t count() const noexcept { return count_; }
  double largest() const noexcept { return largest_; }

  // The latency below which `share` (0 .. 1) of all are, evenly distributed within a bucket; exact to 2^-8. 0 if empty.
  double percentile(double share) const noexcept {
    const double wanted = share * static_cast<double>(count_);
    double before = 0.0;
    for (std::size_t i = 0; i < fine_.size(); ++i) {
      const auto here = static_cast<double>(fine_[i]);
      if (here > 0.0 && before + here >= wanted) {
        const double within = lower(i) + (lower(i + 1) - lower(i)) * (wanted - before) / here;
        return within < largest_ ? within : largest_;
      }
      before += here;
    }
    return largest_;
  }

  // Mean seconds in each stage of the samples in coarse buckets that reach `least` s or more.
  std::vector<double> stages(double least) const {
    std::vector<double> mean(kStages);
    double samples = 0.0;
    for (std::size_t i = 0; i < coarse_.size(); ++i) {
      if (lower((i + 1) << (kFineBits - kCoarseBits)) <= least) continue;
      samples += coarse_[i].samples;
      for (std::size_t stage = 0; stage < kStages; ++stage) mean[stage] += coarse_[i].seconds[stage];
    }
    for (double& value : mean) value = samples > 0.0 ? value / samples : 0.0;
    return mean;
  }

 private:
  static constexpr int kFineBits = 8;  // buckets of an octave, as a power of two
  static constexpr int kCoarseBits = 3;
  static constexpr int kFirst = -34;   // octaves from 2^-34 s (58 ps) ...
  static constexpr int kOctaves = 64;  // ... to 2^30 s (34 years)

  struct Coarse {
    double samples = 0.0;
    double seconds[kStages] = {};
  };

  static std::size_t bucket(double latency) noexcept {
    if (!(latency >= 0x1.0p-34)) return 0;
    if (latency >= 0x1.0p30) return (std::size_t{kOctaves} << kFineBits) - 1;
    // The bits of a double read as an integer are a logarithmic scale.
    const auto scale = std::bit_cast<std::uint64_t>(latency) >> (52 - kFineBits);
    return static_cast<std::size_t>(scale - (static_cast<std::uint64_t>(1023 + kFirst) << kFineBits));
  }

  static double lower(std::size_t index) noexcept {
    if (index == 0) return 0.0;
    const std::uint64_t scale =
        static_cast<std::uint64_t>(index) + (static_cast<std::uint64_t>(1023 + kFirst) << kFineBits);
    return std::bit_cast<double>(scale << (52 - kFineBits));
  }

  std::vector<std::uint64_t> fine_ = std::vector<std::uint64_t>(std::size_t{kOctaves} << kFineBits);
  std::vector<Coarse> coarse_ = std::vector<Coarse>(std::size_t{kOctaves} << kCoarseBits);
  std::int64_t count_ = 0;
  double largest_ = 0.0;
};

}  // namespace lanewise::serve
