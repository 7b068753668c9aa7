// Which of many pools has the fewest samples outstanding; of equals, the one whose last sample was sent longest ago.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace lanewise::serve {

// A tournament: each inner node holds the better of its two children, so a change costs one walk to the root.
class PoolLoads {
 public:
  void resize(std::size_t pools) {
    leaves_ = std::bit_ceil(pools == 0 ? std::size_t{1} : pools);
    entries_.assign(leaves_, Entry{});
    for (std::size_t i = pools; i < leaves_; ++i) entries_[i].outstanding = std::numeric_limits<std::int64_t>::max();
    best_.assign(2 * leaves_, 0);
    for (std::size_t i = 0; i < leaves_; ++i) best_[leaves_ + i] = i;
    for (std::size_t node = leaves_; node-- > 1;) play(node);
  }

  std::size_t least() const noexcept { return best_[1]; }

  void sent(std::size_t pool) noexcept {
    ++entries_[pool].outstanding;
    entries_[pool].last = ++clock_;
    replay(pool);
  }

  void answered(std::size_t pool, std::int64_t samples) noexcept {
    entries_[pool].outstanding -= samples;
    replay(pool);
  }

 private:
  struct Entry {
    std::int64_t outstanding = 0;
    std::uint64_t last = 0;
  };

  void play(std::size_t node) noexcept {
    const std::size_t a = best_[2 * node], b = best_[2 * node + 1];
    const Entry &left = entries_[a], &right = entries_[b];
    const bool second =
        right.outstanding < left.outstanding || (right.outstanding == left.outstanding && right.last < left.last);
    best_[node] = second ? b : a;
  }

  void replay(std::size_t pool) noexcept {
    for (std::size_t node = (leaves_ + pool) / 2; node > 0; node /= 2) play(node);
  }

  std::vector<Entry> entries_;
  std::vector<std::size_t> best_;
  std::size_t leaves_ = 1;
  std::uint64_t clock_ = 0;
};

}  // namespace lanewise::serve
