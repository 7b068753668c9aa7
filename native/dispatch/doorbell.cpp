#include "dispatch/doorbell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace lanewise::dispatch {

namespace {

// Shared with another process, so not FUTEX_PRIVATE.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* limit) noexcept {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

}  // namespace

void Doorbell::ring(std::uint32_t to) noexcept {
  count.store(to, std::memory_order_release);
  wake_sleeper();
}

void Doorbell::ring() noexcept {
  count.fetch_add(1, std::memory_order_release);
  wake_sleeper();
}

// Who rings and who sleeps both exchange `sleeper`: who does so later sees what the other has written before, so either
// the sleeper sees the count or it is woken. It is taken back and read in one, or it could be a later sleep's.
void Doorbell::wake_sleeper() noexcept {
  if (sleeper.exchange(0, std::memory_order_acq_rel) != 0) wake();
}

void Doorbell::wake() noexcept { futex(count, FUTEX_WAKE, INT_MAX, nullptr); }

void Doorbell::sleep(std::uint32_t seen, std::int64_t patience) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec limit{.tv_sec = static_cast<time_t>(patience / kSecond),
                       .tv_nsec = static_cast<long>(patience % kSecond)};
  sleeper.exchange(1, std::memory_order_acq_rel);
  if (count.load(std::memory_order_acquire) == seen) futex(count, FUTEX_WAIT, seen, &limit);
  sleeper.store(0, std::memory_order_relaxed);
}

std::int64_t Patience::look() noexcept {
  if (misses_ < 2) return look_;
  if (++skipped_ < kTryAgain) return 0;
  skipped_ = 0;
  return look_;
}

void Patience::tell(bool came) noexcept { misses_ = came ? 0 : misses_ + 1; }

}  // namespace lanewise::dispatch
