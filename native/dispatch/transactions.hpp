// The transactions of one connection: which query has which slot of the node's memory. One thread opens them, one ends
// them, without a lock; a free slot is a credit, and there are no others.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

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
  // Takes one; open() must follow, and before the node can see the message.
  Taken take() noexcept {
    const std::uint64_t taken = taken_.load(std::memory_order_relaxed);
    const std::uint32_t slot = free_[taken & mask_];
    taken_.store(taken + 1, std::memory_order_relaxed);
    return {slot, static_cast<std::uint32_t>(entries_[slot].state.load(std::memory_order_relaxed) >> 1) + 1};
  }
  void open(const Taken& taken, const Transaction& transaction) noexcept {
    Entry& entry = entries_[taken.slot];
    entry.transaction = transaction;
    entry.state.store(std::uint64_t{taken.tag} << 1 | kOpen, std::memory_order_release);
  }

  // The ending thread. The transaction that has this slot in this generation; null where there is none: an answer came
  // twice, or to something else.
  const Transaction* end(std::uint32_t slot, std::uint32_t tag) noexcept {
    if (slot >= entries_.size()) return nullptr;
    Entry& entry = entries_[slot];
    if (entry.state.load(std::memory_order_acquire) != (std::uint64_t{tag} << 1 | kOpen)) return nullptr;
    entry.state.store(std::uint64_t{tag} << 1, std::memory_order_relaxed);
    return &entry.transaction;
  }
  // Its answer was dealt with: the slot is free again.
  void give_back(std::uint32_t slot) noexcept {
    const std::uint64_t returned = returned_.load(std::memory_order_relaxed);
    free_[returned & mask_] = slot;
    returned_.store(returned + 1, std::memory_order_release);
  }
  // Ends all that are open, once nobody opens any more.
  template <class Each>
  void end_all(Each&& each) {
    for (std::uint32_t slot = 0; slot < slots(); ++slot) {
      const std::uint64_t state = entries_[slot].state.load(std::memory_order_acquire);
      if ((state & kOpen) == 0) continue;
      each(*end(slot, static_cast<std::uint32_t>(state >> 1)));
      give_back(slot);
    }
  }

 private:
  static constexpr std::uint64_t kOpen = 1;

  struct Entry {
    Transaction transaction;
    std::atomic<std::uint64_t> state = 0;  // generation, and whether it is open
  };

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;  // a ring: slots given back, from taken_ on to returned_
  std::uint64_t mask_;
  alignas(64) std::atomic<std::uint64_t> taken_ = 0;
  alignas(64) std::atomic<std::uint64_t> returned_ = 0;
};

}  // namespace lanewise::dispatch
