// Time as the load test counts it, sleeping to the microsecond, and a bell that threads sleep at.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace lanewise::loadtest {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Nanoseconds of CLOCK_MONOTONIC.
std::int64_t now_ns() noexcept;

// `seconds` in nanoseconds; kNever from 146 years on.
std::int64_t to_ns(double seconds) noexcept;

// Sleeps (clock_nanosleep) until `spin` before `when`, then spins: the kernel wakes some tens of microseconds late.
void sleep_until(std::int64_t when, std::int64_t spin) noexcept;

// Makes the kernel wake the calling thread as soon as it can, instead of up to 50 us later so as to save power.
void wake_promptly() noexcept;

// Wakes who waits for it. A waiter reads `rung`, looks whether it has to wait at all, then waits for a later ring.
class Bell {
 public:
  std::uint32_t rung() const noexcept { return rung_.load(std::memory_order_seq_cst); }
  void ring() noexcept;
  // Until it rings after `seen` or until `deadline`; may return for no reason.
  void wait(std::uint32_t seen, std::int64_t deadline) const noexcept;

 private:
  std::atomic<std::uint32_t> rung_ = 0;
};

}  // namespace lanewise::loadtest
