// Queries on their way to a device: a ring buffer of fixed size, filled by whoever issues, emptied by one thread at a
// time.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "loadtest/clock.hpp"
#include "loadtest/system.hpp"

namespace lanewise::loadtest {

struct QueuedQuery {
  std::uint64_t id;
  std::uint64_t sample;
  std::int64_t arrived;  // ns
};

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

class QueryRing {
 public:
  // Room for `least` queries or a little more.
  explicit QueryRing(std::size_t least) : items_(std::bit_ceil(least)), mask_(items_.size() - 1) {}

  // Takes as many as there is room for, and wakes the thread that waits if as many are there as it waits for.
  std::size_t push(std::span<const Query> queries, std::int64_t arrived) noexcept {
    std::uint64_t tail = 0;
    std::size_t count = 0;
    {
      const std::scoped_lock lock(producer_mutex_);
      tail = tail_.load(std::memory_order_relaxed);
      count = std::min<std::size_t>(queries.size(), items_.size() - (tail - head_.load(std::memory_order_acquire)));
      for (std::size_t i = 0; i < count; ++i) items_[(tail + i) & mask_] = {queries[i].id, queries[i].sample, arrived};
      tail += count;
      // Sequentially consistent, as is that thread's order to be woken: one of both sees the other's store.
      tail_.store(tail, std::memory_order_seq_cst);
    }
    if (tail >= wake_at_.load(std::memory_order_seq_cst)) wake();
    return count;
  }

  std::uint64_t tail() const noexcept { return tail_.load(std::memory_order_seq_cst); }
  std::uint64_t head() const noexcept { return head_.load(std::memory_order_relaxed); }

  // The side of the thread that forms a batch.
  const QueuedQuery& front() const noexcept { return items_[head() & mask_]; }
  std::size_t pop(std::span<QueuedQuery> into) noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const std::size_t count = std::min<std::size_t>(into.size(), tail_.load(std::memory_order_acquire) - head);
    for (std::size_t i = 0; i < count; ++i) into[i] = items_[(head + i) & mask_];
    head_.store(head + count, std::memory_order_release);
    return count;
  }

  // Waits until the tail is at `position`, until `deadline` (ns), or until `hurry`, which is called after every wake().
  template <class Hurry>
  void wait(std::uint64_t position, std::int64_t deadline, Hurry&& hurry) noexcept {
    while (true) {
      const std::uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
      wake_at_.store(position, std::memory_order_seq_cst);
      if (tail() >= position || hurry() || now_ns() >= deadline) break;
      sleep(wakes, deadline);
    }
    wake_at_.store(kNobody, std::memory_order_seq_cst);
  }

  void wake() noexcept;

 private:
  // Until wake() is called, unless it was since `wakes` was read, or until `deadline`; may return for no reason.
  void sleep(std::uint32_t wakes, std::int64_t deadline) const noexcept;

  static constexpr std::uint64_t kNobody = std::numeric_limits<std::uint64_t>::max();

  std::vector<QueuedQuery> items_;
  std::uint64_t mask_;
  std::mutex producer_mutex_;
  // Each on a cache line of its own: two threads write them all the time.
  alignas(64) std::atomic<std::uint64_t> tail_ = 0;
  alignas(64) std::atomic<std::uint64_t> head_ = 0;
  alignas(64) std::atomic<std::uint64_t> wake_at_ = kNobody;
  std::atomic<std::uint32_t> wakes_ = 0;  // how often wake() was called: the futex
};

}  // namespace lanewise::loadtest
