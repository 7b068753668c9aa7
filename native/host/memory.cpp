#include "host/memory.hpp"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "host/failure.hpp"
#include "host/parts.hpp"

namespace lanewise::host {

Failure system_failure(const std::string& call, int error, const std::string& hint) {
  return {call + ": " + std::strerror(error), hint};
}

namespace {

constexpr std::size_t kBitsOfWord = 8 * sizeof(unsigned long);

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// How many of at most `most` pages lie on which node; empty where the kernel does not answer.
std::map<int, std::size_t> pages_by_node(const std::byte* data, std::size_t bytes, std::size_t most) {
  const std::size_t pages = (bytes + page_size() - 1) / page_size();
  const std::size_t sampled = std::min(pages, most);
  std::vector<void*> addresses(sampled);
  std::vector<int> status(sampled, kAnyNode);
  for (std::size_t i = 0; i < sampled; ++i) {
    addresses[i] = const_cast<std::byte*>(data) + i * pages / sampled * page_size();
  }
  std::map<int, std::size_t> nodes;
  if (syscall(SYS_move_pages, 0, sampled, addresses.data(), nullptr, status.data(), 0) != 0) return nodes;
  for (const int node : status) ++nodes[node < 0 ? kAnyNode : node];
  return nodes;
}

}  // namespace

// Containers may forbid it; then pages are placed where they are first touched, which is done on that node as well.
void bind_pages(std::byte* data, std::size_t bytes, int node) {
  if (node == kAnyNode) return;
  std::vector<unsigned long> mask(static_cast<std::size_t>(node) / kBitsOfWord + 1, 0);
  mask[static_cast<std::size_t>(node) / kBitsOfWord] = 1UL << (static_cast<std::size_t>(node) % kBitsOfWord);
  // mbind reads one bit less than `maxnode`.
  if (syscall(SYS_mbind, data, bytes, MPOL_BIND, mask.data(), mask.size() * kBitsOfWord + 1, 0) != 0 &&
      errno != EPERM && errno != ENOSYS) {
    throw system_failure("memory cannot be bound to NUMA node " + std::to_string(node), errno,
                         "choose a node that has memory and that this process may use (numactl --show)");
  }
}

Memory::Memory(std::size_t bytes) {
  const std::size_t pages = (bytes + page_size() - 1) / page_size();
  size_ = pages * page_size();
  void* mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    throw system_failure(std::to_string(size_ >> 20) + " MiB of host memory cannot be had", errno, "ask for less");
  }
  data_ = static_cast<std::byte*>(mapped);
}

// Whatever throws below, the mapping is whole, and the destructor gives it back.
Memory::Memory(std::size_t bytes, int node) : Memory(bytes) {
  madvise(data_, size_, MADV_HUGEPAGE);  // as far as the kernel can: fewer TLB misses
  bind_pages(data_, size_, node);
  in_parts(size_, node, [this](std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; at += page_size()) data_[at] = std::byte{1};
  });
}

Memory::~Memory() {
  if (data_ != nullptr) munmap(data_, size_);
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

std::map<int, std::size_t> Memory::nodes(std::size_t most) const { return pages_by_node(data_, size_, most); }

int node_of(const std::byte* data, std::size_t bytes) {
  std::size_t pages = 0, most = 0;
  int node = kAnyNode;
  for (const auto& [each, count] : pages_by_node(data, bytes, 64)) {
    pages += count;
    if (count <= most) continue;
    most = count;
    node = each;
  }
  return 2 * most > pages ? node : kAnyNode;
}

void pin_thread(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &set);
  }
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    throw system_failure("a thread cannot be kept on CPU " + std::to_string(cpus.front()), errno,
                         "choose CPUs that this process may use (taskset -p)");
  }
}

}  // namespace lanewise::host
