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
  // Sequentially consistent, as is the sleeper's store: one of both sees the other's.
  count.store(to, std::memory_order_seq_cst);
  if (sleeper.load(std::memory_order_seq_cst) != 0) wake();
}

void Doorbell::ring() noexcept {
  count.fetch_add(1, std::memory_order_seq_cst);
  if (sleeper.load(std::memory_order_seq_cst) != 0) wake();
}

void Doorbell::wake() noexcept {
  sleeper.store(0, std::memory_order_seq_cst);
  futex(count, FUTEX_WAKE, INT_MAX, nullptr);
}

void Doorbell::sleep(std::uint32_t seen, std::int64_t patience) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec limit{.tv_sec = static_cast<time_t>(patience / kSecond),
                       .tv_nsec = static_cast<long>(patience % kSecond)};
  sleeper.store(1, std::memory_order_seq_cst);
  if (count.load(std::memory_order_seq_cst) == seen) futex(count, FUTEX_WAIT, seen, &limit);
  sleeper.store(0, std::memory_order_seq_cst);
}

std::int64_t Patience::look() noexcept {
  if (misses_ < 2) return kLook;
  if (++skipped_ < kTryAgain) return 0;
  skipped_ = 0;
  return kLook;
}

void Patience::tell(bool came) noexcept { misses_ = came ? 0 : misses_ + 1; }

}  // namespace lanewise::dispatch
