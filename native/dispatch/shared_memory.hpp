// Memory that another process may map as well: a file without a name (memfd), gone with the last process that has it.
#pragma once

#include <cstddef>
#include <memory>

#include "host/memory.hpp"

namespace lanewise::dispatch {

class SharedMemory {
 public:
  // New, of zeros, on a NUMA node as far as this process may; host::Failure where memory is short.
  SharedMemory(std::size_t bytes, int node);
  // What another process has made; takes a copy of `fd`. host::Failure where it is smaller than `bytes`, or can still
  // shrink below this process.
  static std::shared_ptr<SharedMemory> map(int fd, std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
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
