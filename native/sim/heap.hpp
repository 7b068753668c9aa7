// What keeps things in order: a heap of what ends, and the least of many values.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace lanewise::sim {

// A 4-ary min-heap: half the levels of a binary one, and the four children are adjacent in memory.
template <typename T>
class MinHeap {
 public:
  bool empty() const noexcept { return items_.empty(); }
  std::size_t size() const noexcept { return items_.size(); }
  const T& top() const noexcept { return items_.front(); }
  void clear() noexcept { items_.clear(); }

  void push(T item) {
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
    const T last = items_.back();
    items_.pop_back();
    if (!items_.empty()) sink(0, last);
  }

  void replace_top(T item) { sink(0, item); }

  // For many items at once: append() them all, then restore() the order.
  void append(T item) { items_.push_back(item); }
  void restore() {
    for (std::size_t i = (items_.size() + 2) / 4; i-- > 0;) sink(i, items_[i]);
  }

 protected:
  std::vector<T> items_;

 private:
  void sink(std::size_t hole, T item) {
    const std::size_t size = items_.size();
    for (;;) {
      const std::size_t first = 4 * hole + 1;
      if (first >= size) break;
      std::size_t least = first;
      const std::size_t end = std::min(first + 4, size);
      for (std::size_t child = first + 1; child < end; ++child) {
        least = items_[child].before(items_[least]) ? child : least;
      }
      if (!items_[least].before(item)) break;
      items_[hole] = items_[least];
      hole = least;
    }
    items_[hole] = item;
  }
};

// A flow in progress: it ends when its class has served `tag` bytes to each flow. Ties go by id.
struct Tagged {
  double tag;
  std::int64_t id;
  bool before(const Tagged& other) const noexcept {
    return (tag < other.tag) | ((tag == other.tag) & (id < other.id));  // no branches: they would be guessed wrong
  }
};

class TagHeap : public MinHeap<Tagged> {
 public:
  // Moves the origin of all tags to `origin`. Rounding may make tags equal, so the order by id is restored.
  void rebase(double origin) {
    for (Tagged& item : items_) item.tag -= origin;
    restore();
  }
};

// The least of many values of which few change at a time: node i holds the lesser of nodes 2i and 2i + 1.
class Tournament {
 public:
  // All values become infinity.
  void resize(std::size_t size) {
    leaves_ = std::bit_ceil(std::max<std::size_t>(1, size));
    nodes_.assign(2 * leaves_, std::numeric_limits<double>::infinity());
  }

  // Takes effect at update().
  void set(std::size_t place, double value) {
    nodes_[leaves_ + place] = value;
    dirty_.push_back(leaves_ + place);
  }

  void update() {
    if (dirty_.size() * kFewParts > leaves_) {
      for (std::size_t node = leaves_ - 1; node > 0; --node) decide(node);
    } else {
      for (std::size_t node : dirty_) {
        for (node /= 2; node > 0; node /= 2) decide(node);
      }
    }
    dirty_.clear();
  }

  double least() const noexcept { return nodes_[1]; }

  // Appends the places, ascending, whose value is at most `most`.
  void find(double most, std::vector<std::size_t>& places, std::size_t node = 1) const {
    if (!(nodes_[node] <= most)) return;
    if (node >= leaves_) {
      places.push_back(node - leaves_);
      return;
    }
    find(most, places, 2 * node);
    find(most, places, 2 * node + 1);
  }

 private:
  static constexpr std::size_t kFewParts = 8;  // below 1 / 8 of all, single ways up are shorter than all of them

  void decide(std::size_t node) { nodes_[node] = std::min(nodes_[2 * node], nodes_[2 * node + 1]); }

  std::size_t leaves_ = 1;
  std::vector<double> nodes_;
  std::vector<std::size_t> dirty_;  // leaves whose ways up lag behind
};

}  // namespace lanewise::sim
