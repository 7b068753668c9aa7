#include "loadtest/clock.hpp"

#include <sys/prctl.h>
#include <time.h>

namespace lanewise::loadtest {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

std::int64_t now_ns() noexcept {
  timespec now{};
  static_cast<void>(clock_gettime(CLOCK_MONOTONIC, &now));  // cannot fail on Linux
  return std::int64_t{now.tv_sec} * kSecond + now.tv_nsec;
}

void sleep_until(std::int64_t when, std::int64_t spin) noexcept {
  if (const std::int64_t wake = when - spin; wake > now_ns()) {
    const timespec until{.tv_sec = static_cast<time_t>(wake / kSecond), .tv_nsec = static_cast<long>(wake % kSecond)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
    }
  }
  while (now_ns() < when) {
  }
}

void wake_promptly() noexcept { prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

}  // namespace lanewise::loadtest
