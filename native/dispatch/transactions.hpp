// The transactions of one connection: which query has which slot of the node's memory. One thread opens them, one ends
// them, without a lock; a free slot is a credit, and there are no others.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "dispatch/balance.hpp"
#include "loadtest/system.hpp"

namespace lanewise::dispatch {

struct Transaction {
  std::uint64_t query = 0;  // the generator's
  std::int64_t issued = 0;  // ns
  std::int64_t posted = 0;  // ns
};

class Transactions {
 public:
  explicit Transactions(std::uint32_t slots) : entries_(slots), free_(std::bit_ceil(slots)), mask_(free_.size() - 1) {
    for (std::uint32_t slot = 0; slot < slots; ++slot) free_[slot] = slot;
    returned_.store(slots);
  }

  std::uint32_t slots() const noexcept { return static_cast<std::uint32_t>(entries_.size()); }
  // Opened and not ended; from any thread.
  std::uint64_t outstanding() const noexcept {
    return slots() - (returned_.load(std::memory_order_acquire) - taken_.load(std::memory_order_relaxed));
  }

  struct Taken {
    std::uint32_t slot, tag;
  };

  // The opening thread. Whether there is a credit:
  bool has_credit() const noexcept {
    return returned_.load(std::memory_order_acquire) != taken_.load(std::memory_order_relaxed);
  }
  // What note() was given last; none is the same as before.
  RoundTrip newest() const noexcept { return newest_.load(std::memory_order_relaxed); }
  // Takes one; open() must follow, and before the node can see the message.
  Taken take() noexcept {
    const std::uint64_t taken = taken_.load(std::memory_order_relaxed);
    const std::uint32_t slot = free_[taken & mask_];
    taken_.store(taken + 1, std::memory_order_relaxed);
    return {slot, generation(entries_[slot].state.load(std::memory_order_relaxed) + kNext)};
  }
  // `ahead`: queries that are outstanding at its node.
  void open(const Taken& taken, const Transaction& transaction, std::uint32_t ahead = 0) noexcept {
    Entry& entry = entries_[taken.slot];
    entry.transaction = transaction;
    entry.ahead = ahead;
    entry.state.store(open_state(taken.tag), std::memory_order_release);
  }

  // The ending thread. The transaction that has this slot in this generation; null where there is none: an answer came
  // twice, or to something else.
  const Transaction* end(std::uint32_t slot, std::uint32_t tag) noexcept {
    if (slot >= entries_.size()) return nullptr;
    Entry& entry = entries_[slot];
    if (entry.state.load(std::memory_order_acquire) != open_state(tag)) return nullptr;
    entry.state.store(open_state(tag) & ~kOpen, std::memory_order_relaxed);
    return &entry.transaction;
  }
  // Of one that ended, until it is given back.
  std::uint32_t ahead(std::uint32_t slot) const noexcept { return entries_[slot].ahead; }
  // Its answer was dealt with: the slot is free again.
  void give_back(std::uint32_t slot) noexcept {
    const std::uint64_t returned = returned_.load(std::memory_order_relaxed);
    free_[returned & mask_] = slot;
    returned_.store(returned + 1, std::memory_order_release);
  }
  // How long queries took that came back together, for the opening thread.
  void note(const RoundTrip& trip) noexcept { newest_.store(trip, std::memory_order_relaxed); }
  // Ends all that are open, once nobody opens any more.
  template <class Each>
  void end_all(Each&& each) {
    for (std::uint32_t slot = 0; slot < slots(); ++slot) {
      const std::uint32_t state = entries_[slot].state.load(std::memory_order_acquire);
      if ((state & kOpen) == 0) continue;
      each(*end(slot, generation(state)));
      give_back(slot);
    }
  }

 private:
  // Of a state: the generation, modulo 2^31; in the lowest bit, whether it is open.
  static constexpr std::uint32_t kOpen = 1, kNext = 2;
  static constexpr std::uint32_t generation(std::uint32_t state) { return state >> 1; }
  static constexpr std::uint32_t open_state(std::uint32_t tag) { return tag << 1 | kOpen; }

  struct Entry {  // half a cache line
    Transaction transaction;
    std::uint32_t ahead = 0;
    std::atomic<std::uint32_t> state = 0;
  };
  static_assert(sizeof(Entry) == 32);

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;  // a ring: slots given back, from taken_ on to returned_
  std::uint64_t mask_;
  alignas(64) std::atomic<std::uint64_t> taken_ = 0;
  alignas(64) std::atomic<std::uint64_t> returned_ = 0;
  std::atomic<RoundTrip> newest_ = {};  // in a cache line that its reader reads anyway
  static_assert(std::atomic<RoundTrip>::is_always_lock_free);
};

}  // namespace lanewise::dispatch
