// Time as the load test counts it, and sleeping to the microsecond.
#pragma once

#include <cstdint>

namespace lanewise::loadtest {

// Nanoseconds of CLOCK_MONOTONIC.
std::int64_t now_ns() noexcept;

// Sleeps (clock_nanosleep) until `spin` before `when`, then spins: the kernel wakes some tens of microseconds late.
void sleep_until(std::int64_t when, std::int64_t spin) noexcept;

// Makes the kernel wake the calling thread as soon as it can, instead of up to 50 us later so as to save power.
void wake_promptly() noexcept;

}  // namespace lanewise::loadtest
