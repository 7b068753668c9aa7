// Methods that bring scattered samples of a pinned library to a GPU, as native/cuda/queries.cpp times them: a copy call
// each, one call for the batch, a kernel that reads them, or gathered by the CPU and copied in one piece.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/engine.hpp"
#include "cuda/pinned.hpp"

namespace lanewise::loadtest {

using cuda::CUdeviceptr;

enum class GpuMethod { kBatch, kKernel, kStaged, kCalls };
constexpr std::array<const char*, 4> kGpuMethods{"batch", "kernel", "staged", "calls"};  // in that order

// The library as a GPU sees it.
struct GpuSource {
  const std::byte* host = nullptr;
  CUdeviceptr device = 0;
  std::size_t bytes = 0;  // of a sample
  std::size_t stride = 0;
  int node = host::kAnyNode;
};

// One batch in flight: its stream and its buffers.
class GpuStream {
 public:
  GpuStream(const cuda::Gpu& gpu, const GpuSource& source, std::size_t batch);

  // Prepares what a method needs in addition to the buffer; host::Failure where the driver has no such call.
  void prepare(GpuMethod method);
  // Copies, and waits for the end. Its context is current.
  void copy_samples(GpuMethod method, std::span<const std::uint32_t> slots);
  const std::byte* read_back(std::size_t bytes);

  CUdeviceptr address() const { return buffer_->get(); }
  std::shared_ptr<const void> keeper() const { return buffer_; }

 private:
  const std::byte* sample(std::uint32_t slot) const { return source_.host + slot * source_.stride; }
  void queue(GpuMethod method, std::span<const std::uint32_t> slots);
  void by_calls(std::span<const std::uint32_t> slots);
  void by_batch(std::span<const std::uint32_t> slots);
  void by_kernel(std::span<const std::uint32_t> slots);
  void staged(std::span<const std::uint32_t> slots);
  void copy(CUdeviceptr to, const void* from, std::size_t bytes);

  const cuda::Gpu& gpu_;
  GpuSource source_;
  std::size_t batch_;
  std::shared_ptr<cuda::DeviceMemory> buffer_;
  std::unique_ptr<cuda::Pinned> picks_;  // slots on their way to the kernel
  cuda::DeviceMemory picked_;
  std::unique_ptr<cuda::Pinned> staging_;
  std::vector<CUdeviceptr> to_, from_;
  std::vector<std::size_t> sizes_;
  std::vector<std::byte> back_;
  cuda::Event done_;
  cuda::Stream stream_;  // last: what runs on it ends before its memory goes
};

}  // namespace lanewise::loadtest
