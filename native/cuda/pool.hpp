// Buffers for one piece of work after the other: to pin host memory takes longer than most measurements.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>

#include "cuda/driver.hpp"
#include "cuda/pinned.hpp"

namespace lanewise::cuda {

// Buffers of one kind by where they are (a NUMA node, a GPU). One is free when nobody else points to it.
template <class Buffer>
class Shelf {
 public:
  // The smallest free one of `bytes` or more; else a new one, in place of a free one that is too small.
  std::shared_ptr<Buffer> take(int where, std::size_t bytes, const std::function<std::shared_ptr<Buffer>()>& make);
  // Gives back the free ones; whether there were any.
  bool clear();
  std::size_t free_bytes(int where) const;

 private:
  struct PooledBuffer {
    std::size_t bytes;
    std::shared_ptr<Buffer> buffer;
    bool is_free() const { return buffer.use_count() == 1; }
  };
  std::multimap<int, PooledBuffer> buffers_;
};

class Pool {
 public:
  // A buffer of at least so many bytes, whose contents are anything. Where memory is short what is free is given back
  // first; host::Failure where that does not help.
  std::shared_ptr<Pinned> host(const std::shared_ptr<const Context>& registrar, std::size_t bytes, int node);
  std::shared_ptr<DeviceMemory> device(const std::shared_ptr<const Context>& context, std::size_t bytes);

  // What is kept of a GPU's memory and free for the next piece of work.
  std::size_t free_bytes(int ordinal) const { return devices_.free_bytes(ordinal); }

 private:
  bool clear();

  Shelf<Pinned> hosts_;
  Shelf<DeviceMemory> devices_;
};

}  // namespace lanewise::cuda
