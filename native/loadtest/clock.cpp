#include "loadtest/clock.hpp"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace lanewise::loadtest {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

timespec spec(std::int64_t ns) {
  return {.tv_sec = static_cast<time_t>(ns / kSecond), .tv_nsec = static_cast<long>(ns % kSecond)};
}

}  // namespace

std::int64_t now_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * kSecond + now.tv_nsec;
}

std::int64_t to_ns(double seconds) noexcept {
  return seconds < 4.6e9 ? static_cast<std::int64_t>(seconds * 1e9) : kNever;
}

void sleep_until(std::int64_t when, std::int64_t spin) noexcept {
  if (const std::int64_t wake = when - spin; wake > now_ns()) {
    const timespec until = spec(wake);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
    }
  }
  while (now_ns() < when) {
  }
}

void wake_promptly() noexcept { prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); }

void Bell::ring() noexcept {
  rung_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&rung_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Bell::wait(std::uint32_t seen, std::int64_t deadline) const noexcept {
  static_assert(sizeof rung_ == sizeof(std::uint32_t));
  const timespec until = spec(deadline);
  syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&rung_), FUTEX_WAIT_BITSET_PRIVATE, seen,
          deadline == kNever ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace lanewise::loadtest
