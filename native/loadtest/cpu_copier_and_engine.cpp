#include "loadtest/cpu_copier_and_engine.hpp"

#include <algorithm>
#include <cstring>

namespace lanewise::loadtest {

namespace {

constexpr std::int64_t kServiceSpin = 20'000;  // ns at the end of a service time: sleep ends late

}  // namespace

Allocate host_memory() {
  return [](std::size_t bytes, int node) {
    const auto memory = std::make_shared<host::Memory>(bytes, node);
    return Block{memory->data(), memory};
  };
}

void CpuCopier::prepare(std::size_t batch, std::size_t streams) {
  buffers_.clear();
  for (std::size_t i = 0; i < streams; ++i) {
    buffers_.push_back(std::make_shared<host::Memory>(batch * library_.stride(), node_));
  }
}

void CpuCopier::copy(std::size_t stream, std::span<const std::uint32_t> slots) {
  std::byte* to = buffers_[stream]->data();
  for (const std::uint32_t slot : slots) {
    std::memcpy(to, source_ + slot * library_.stride(), library_.bytes());
    to += library_.stride();
  }
}

std::uint64_t CpuCopier::address(std::size_t stream) const {
  return reinterpret_cast<std::uint64_t>(buffers_[stream]->data());
}

void SyntheticCpuEngine::infer(const Batch& batch, std::span<Answer>) {
  const std::int64_t service = service_.of(batch.queries.size());
  if (service == 0) return;
  std::int64_t end = 0;
  {
    const std::scoped_lock lock(mutex_);
    end = free_at_ = std::max(now_ns(), free_at_) + service;
  }
  sleep_until(end, kServiceSpin);
}

}  // namespace lanewise::loadtest
