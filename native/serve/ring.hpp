// A first-in, first-out queue in one block of memory that grows by doubling.
#pragma once

#include <cstddef>
#include <vector>

namespace lanewise::serve {

template <typename T>
class Ring {
 public:
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  const T& front() const noexcept { return items_[first_]; }

  void push(const T& item) {
    if (size_ == items_.size()) grow();
    items_[(first_ + size_++) & (items_.size() - 1)] = item;
  }

  T pop() noexcept {
    const T item = items_[first_];
    first_ = (first_ + 1) & (items_.size() - 1);
    --size_;
    return item;
  }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 16 : 2 * items_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = items_[(first_ + i) & (items_.size() - 1)];
    items_.swap(larger);
    first_ = 0;
  }

  std::vector<T> items_;  // a power of two
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace lanewise::serve
