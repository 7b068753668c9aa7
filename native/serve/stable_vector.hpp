// A vector that grows without moving its elements: references to them stay valid.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace lanewise::serve {

// Blocks of a power of two, so that finding an element is a shift and a mask; std::deque divides, at every access.
template <typename T>
class StableVector {
 public:
  std::size_t size() const noexcept { return size_; }
  T& operator[](std::size_t index) noexcept { return blocks_[index / kBlock][index % kBlock]; }
  const T& operator[](std::size_t index) const noexcept { return blocks_[index / kBlock][index % kBlock]; }

  void emplace_back() {
    if (size_ == blocks_.size() * kBlock) blocks_.push_back(std::make_unique<T[]>(kBlock));
    ++size_;
  }

 private:
  static constexpr std::size_t kBlock = 32;

  std::vector<std::unique_ptr<T[]>> blocks_;
  std::size_t size_ = 0;
};

}  // namespace lanewise::serve
