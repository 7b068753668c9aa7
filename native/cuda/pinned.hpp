// Host memory that GPUs reach: pages on a NUMA node, registered with the driver.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "cuda/driver.hpp"
#include "host/memory.hpp"

namespace lanewise::cuda {

// Bound, touched, then registered for every context; given back at the end.
class Pinned {
 public:
  Pinned(std::shared_ptr<const Context> context, std::size_t bytes, int node);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  std::byte* data() const { return data_; }
  int node() const { return node_; }  // asked for
  std::map<int, std::size_t> pages() const { return memory_.nodes(); }

  // Where a kernel of that context finds it.
  CUdeviceptr seen_by(const Context& context) const;

 private:
  std::shared_ptr<const Context> context_;
  host::Memory memory_;
  std::byte* data_;
  int node_;
};

}  // namespace lanewise::cuda
