// Memory that another process may map as well: a file without a name (memfd), gone with the last process that has it.
#pragma once

#include <cstddef>
#include <memory>

#include "host/memory.hpp"

namespace lanewise::dispatch {

// Slots that a node's Frontend fills: host memory, or a GPU's.
class SlotMemory {
 public:
  virtual ~SlotMemory() = default;
  virtual std::byte* data() const = 0;
  virtual std::size_t size() const = 0;
};

class SharedMemory : public SlotMemory {
 public:
  // New, of zeros, on a NUMA node as far as this process may; host::Failure where memory is short.
  SharedMemory(std::size_t bytes, int node);
  // What another process has made; takes a copy of `fd`. host::Failure where it is smaller than `bytes`, or can still
  // shrink below this process.
  static std::shared_ptr<SharedMemory> map(int fd, std::size_t bytes);
  ~SharedMemory() override;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const override { return data_; }
  std::size_t size() const override { return size_; }
  int fd() const { return fd_; }

 private:
  SharedMemory() = default;
  void map_whole();

  int fd_ = -1;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

using SharedMemoryPointer = std::shared_ptr<SharedMemory>;

}  // namespace lanewise::dispatch
