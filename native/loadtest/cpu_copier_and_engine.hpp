// The CPU as a device: a copier that gathers samples by memcpy, and an engine that lets a service time pass.
#pragma once

#include <mutex>

#include "host/memory.hpp"
#include "loadtest/copier_and_engine.hpp"
#include "loadtest/sample_library.hpp"

namespace lanewise::loadtest {

// Memory for a library that CPUs read.
Allocate host_memory();

class CpuCopier : public SampleCopier {
 public:
  CpuCopier(SampleLibrary& library, int node) : library_(library), source_(library.on(node)), node_(node) {}
  void prepare(std::size_t batch, std::size_t streams) override;
  void copy(std::size_t stream, std::span<const std::uint32_t> slots) override;
  std::uint64_t address(std::size_t stream) const override;
  std::shared_ptr<const void> keeper(std::size_t stream) const override { return buffers_[stream]; }
  const std::byte* read_back(std::size_t stream, std::size_t) override { return buffers_[stream]->data(); }
  std::string method() const override { return "memcpy"; }

 private:
  const SampleLibrary& library_;
  const std::byte* source_;
  int node_;
  std::vector<std::shared_ptr<host::Memory>> buffers_;
};

// A device that takes one batch after the other without a gap, as a GPU's stream does: a batch begins when its data is
// there and the one before it has ended, however late the thread of that one wakes.
class SyntheticCpuEngine : public InferenceEngine {
 public:
  explicit SyntheticCpuEngine(ServiceTime service) : service_(service) {}
  void prepare(std::size_t, std::size_t) override {}
  void infer(const Batch& batch, std::span<Answer> answers) override;

 private:
  ServiceTime service_;
  std::mutex mutex_;
  std::int64_t free_at_ = 0;
};

}  // namespace lanewise::loadtest
