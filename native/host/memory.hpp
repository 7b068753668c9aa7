// Host memory on a chosen NUMA node, and threads on chosen CPUs. Plain system calls: libnuma is not everywhere.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace lanewise::host {

constexpr int kAnyNode = -1;

// Pages mapped, bound to a node as far as this process may (kAnyNode: wherever first touched) and touched; unmapped at
// the end.
class Memory {
 public:
  Memory(std::size_t bytes, int node);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  // How many pages are on which node, as the kernel says (move_pages of at most `most` pages, evenly distributed);
  // pages it cannot place count under kAnyNode. Empty where the kernel does not answer.
  std::map<int, std::size_t> nodes(std::size_t most = 4096) const;

 private:
  explicit Memory(std::size_t bytes);  // mapped, not touched yet

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// The NUMA node that most of some memory lies on, as the kernel says of evenly distributed pages; kAnyNode where it
// says nothing, or no node has more than half of them.
int node_of(const std::byte* data, std::size_t bytes);

// Binds pages that nobody has touched yet to a node, as far as this process may (kAnyNode: leaves them as they are).
void bind_pages(std::byte* data, std::size_t bytes, int node);

// Keeps the calling thread on these CPUs; none: leaves it as it is.
void pin_thread(const std::vector<int>& cpus);

}  // namespace lanewise::host
