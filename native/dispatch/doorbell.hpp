// A 32-bit count that one thread raises and another waits for, in one process or in memory that two share (a futex).
#pragma once

#include <atomic>
#include <cstdint>

namespace lanewise::dispatch {

// In shared memory both sides see the same fields; nothing here points anywhere.
struct Doorbell {
  std::atomic<std::uint32_t> count = 0;
  std::atomic<std::uint32_t> sleeper = 0;  // 1: somebody sleeps, or is about to

  // Raises the count to `to` and wakes who sleeps.
  void ring(std::uint32_t to) noexcept;
  // The same by one, from any thread.
  void ring() noexcept;
  // Wakes who sleeps, the count as it is.
  void wake() noexcept;
  // Sleeps until the count is not `seen`, until wake(), or for `patience` ns; may return for no reason.
  void sleep(std::uint32_t seen, std::int64_t patience) noexcept;

 private:
  void wake_sleeper() noexcept;
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// Whether to look at a doorbell for a while before sleeping on it. Looking costs a CPU, sleeping some tens of us until
// awake; so it looks where that was worth it the last times, and tries again now and then.
class Patience {
 public:
  // `look`: ns, about twice what falling asleep and waking costs, or a round trip if that is longer.
  explicit Patience(std::int64_t look) : look_(look) {}
  // ns to look before sleeping.
  std::int64_t look() noexcept;
  void tell(bool came) noexcept;  // whether a message came while it looked

 private:
  static constexpr int kTryAgain = 64;
  std::int64_t look_;
  int misses_ = 0;
  int skipped_ = 0;
};

}  // namespace lanewise::dispatch
