// Random variates that are the same bits on every machine: the standard fixes this generator's output, but neither
// its distributions nor the last digit of std::log.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <numbers>
#include <random>

namespace lanewise::serve {

// Natural logarithm of a normal number > 0 from additions, multiplications and divisions alone, to 2e-16 of max(1, |ln
// x|). ln m = 2 artanh((m - 1) / (m + 1)) with m in [sqrt(1/2), sqrt(2)): Abramowitz and Stegun, 4.1.27.
inline double portable_log(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  auto m = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > std::numbers::sqrt2) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  constexpr double kTerms[] = {1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                               1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  double sum = 1.0 / 21.0;
  for (const double term : kTerms) sum = sum * z + term;
  return exponent * std::numbers::ln2 + 2.0 * s * sum;
}

// One stream of variates; streams of one seed and different numbers are independent. A stream is used for one kind of
// variate: exponential ones are drawn ahead, as the logarithms of a block overlap in the processor.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream) {
    const std::uint64_t words[] = {seed, stream};
    std::seed_seq sequence{static_cast<std::uint32_t>(words[0]), static_cast<std::uint32_t>(words[0] >> 32),
                           static_cast<std::uint32_t>(words[1]), static_cast<std::uint32_t>(words[1] >> 32)};
    bits_.seed(sequence);
  }

  // Uniform in (0, 1]: never 0, so its logarithm is finite.
  double uniform() { return static_cast<double>((bits_() >> 11) + 1) * 0x1.0p-53; }
  double exponential(double mean) {
    if (next_ == logarithms_.size()) draw();
    return -mean * logarithms_[next_++];
  }
  // 0 .. below - 1; biased by less than below / 2^53.
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(static_cast<double>(bits_() >> 11) * 0x1.0p-53 * static_cast<double>(count));
  }

 private:
  void draw() {
    for (double& each : logarithms_) each = uniform();
    for (double& each : logarithms_) each = portable_log(each);
    next_ = 0;
  }

  std::mt19937_64 bits_;
  std::array<double, 64> logarithms_{};  // of uniform variates; those before next_ are used up
  std::size_t next_ = logarithms_.size();
};

}  // namespace lanewise::serve
