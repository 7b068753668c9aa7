#include "loadtest/query_ring.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace lanewise::loadtest {

void QueryRing::wake() noexcept {
  wake_at_.store(kNobody, std::memory_order_seq_cst);  // once is enough
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&wakes_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void QueryRing::sleep(std::uint32_t wakes, std::int64_t deadline) const noexcept {
  static_assert(sizeof wakes_ == sizeof(std::uint32_t));
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  const timespec until{.tv_sec = static_cast<time_t>(deadline / kNsPerSecond),
                       .tv_nsec = static_cast<long>(deadline % kNsPerSecond)};
  syscall(SYS_futex, reinterpret_cast<const std::uint32_t*>(&wakes_), FUTEX_WAIT_BITSET_PRIVATE, wakes,
          deadline == kNever ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace lanewise::loadtest
