// Host memory that GPUs reach: pages registered with the driver.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>

#include "cuda/driver.hpp"
#include "host/memory.hpp"

namespace lanewise::cuda {

// Registered for every context; given back at the end.
class Pinned {
 public:
  // New pages, bound to a NUMA node and touched.
  Pinned(std::shared_ptr<const Context> context, std::size_t bytes, int node);
  // Pages that are there, which must outlive it.
  Pinned(std::shared_ptr<const Context> context, std::byte* data, std::size_t bytes, int node);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  std::byte* data() const { return data_; }
  int node() const { return node_; }  // as requested
  std::map<int, std::size_t> pages() const { return memory_ ? memory_->nodes() : std::map<int, std::size_t>(); }

  // Where a kernel of that context finds it.
  CUdeviceptr seen_by(const Context& context) const;

 private:
  void register_pages(std::size_t bytes);

  std::shared_ptr<const Context> context_;
  std::optional<host::Memory> memory_;  // none where it belongs to another
  std::byte* data_;
  int node_;
};

}  // namespace lanewise::cuda
