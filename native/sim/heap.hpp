// A 4-ary min-heap: half the levels of a binary one, and the four children lie side by side.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lanewise::sim {

// A flow in progress: it ends when its class has served `tag` bytes to each flow. Ties go by id.
struct Tagged {
  double tag;
  std::int64_t id;
  bool before(const Tagged& other) const noexcept { return tag < other.tag || (tag == other.tag && id < other.id); }
};

class TagHeap {
 public:
  bool empty() const noexcept { return items_.empty(); }
  std::size_t size() const noexcept { return items_.size(); }
  const Tagged& top() const noexcept { return items_.front(); }

  void push(Tagged item) {
    std::size_t hole = items_.size();
    items_.push_back(item);
    while (hole > 0) {
      const std::size_t up = (hole - 1) / 4;
      if (!item.before(items_[up])) break;
      items_[hole] = items_[up];
      hole = up;
    }
    items_[hole] = item;
  }

  void pop() {
    const Tagged last = items_.back();
    items_.pop_back();
    if (!items_.empty()) sink(0, last);
  }

  // Moves the origin of all tags to `origin`. Rounding may make tags equal, so the order by id is restored.
  void rebase(double origin) {
    for (Tagged& item : items_) item.tag -= origin;
    std::sort(items_.begin(), items_.end(), [](const Tagged& a, const Tagged& b) { return a.before(b); });
  }

 private:
  void sink(std::size_t hole, Tagged item) {
    const std::size_t size = items_.size();
    for (;;) {
      const std::size_t first = 4 * hole + 1;
      if (first >= size) break;
      std::size_t least = first;
      const std::size_t end = std::min(first + 4, size);
      for (std::size_t child = first + 1; child < end; ++child) {
        if (items_[child].before(items_[least])) least = child;
      }
      if (!items_[least].before(item)) break;
      items_[hole] = items_[least];
      hole = least;
    }
    items_[hole] = item;
  }

  std::vector<Tagged> items_;
};

}  // namespace lanewise::sim
