#include "loadtest/gpu_methods.hpp"

#include <cstring>

#include "host/failure.hpp"

namespace lanewise::loadtest {

// A thread a stream waits for copies: asleep, or several GPUs would leave no CPU to the load generator.
GpuStream::GpuStream(const cuda::Gpu& gpu, const GpuSource& source, std::size_t batch)
    : gpu_(gpu),
      source_(source),
      batch_(batch),
      buffer_(std::make_shared<cuda::DeviceMemory>(cuda::allocate(gpu.context(), batch * source.stride))),
      done_(cuda::make_event(gpu.context(), cuda::kEventBlockingSync | cuda::kEventDisableTiming)),
      stream_(cuda::make_stream(gpu.context())) {}

void GpuStream::prepare(GpuMethod method) {
  const cuda::Calls& calls = gpu_.calls();
  if (method == GpuMethod::kKernel && picks_ == nullptr) {
    const std::size_t size = batch_ * sizeof(std::uint32_t);
    picks_ = std::make_unique<cuda::Pinned>(gpu_.context(), size, source_.node);
    picked_ = cuda::allocate(gpu_.context(), size);
  } else if (method == GpuMethod::kStaged && staging_ == nullptr) {
    staging_ = std::make_unique<cuda::Pinned>(gpu_.context(), batch_ * source_.stride, source_.node);
  } else if (method == GpuMethod::kBatch) {
    if (calls.cuMemcpyBatchAsync_v2 == nullptr && calls.cuMemcpyBatchAsync == nullptr) {
      throw host::Failure("this driver has no cuMemcpyBatchAsync", "it came with CUDA 12.8 (driver 570)");
    }
    from_.resize(batch_);
    sizes_.assign(batch_, source_.bytes);
    to_.resize(batch_);
    for (std::size_t i = 0; i < batch_; ++i) to_[i] = address() + i * source_.stride;
  }
}

void GpuStream::copy_samples(GpuMethod method, std::span<const std::uint32_t> slots) {
  queue(method, slots);
  const cuda::Calls& calls = gpu_.calls();
  gpu_.check(calls.cuEventRecord(done_.get(), stream_.get()), "cuEventRecord");
  gpu_.check(calls.cuEventSynchronize(done_.get()), "cuEventSynchronize");
}

void GpuStream::queue(GpuMethod method, std::span<const std::uint32_t> slots) {
  switch (method) {
    case GpuMethod::kBatch:
      return by_batch(slots);
    case GpuMethod::kKernel:
      return by_kernel(slots);
    case GpuMethod::kStaged:
      return staged(slots);
    case GpuMethod::kCalls:
      return by_calls(slots);
  }
}

void GpuStream::copy(CUdeviceptr to, const void* from, std::size_t bytes) {
  gpu_.check(gpu_.calls().cuMemcpyHtoDAsync(to, from, bytes, stream_.get()), "cuMemcpyHtoDAsync");
}

void GpuStream::by_calls(std::span<const std::uint32_t> slots) {
  CUdeviceptr to = address();
  for (const std::uint32_t slot : slots) {
    copy(to, sample(slot), source_.bytes);
    to += source_.stride;
  }
}

void GpuStream::by_batch(std::span<const std::uint32_t> slots) {
  for (std::size_t i = 0; i < slots.size(); ++i) from_[i] = reinterpret_cast<CUdeviceptr>(sample(slots[i]));
  cuda::CUmemcpyAttributes attributes{.source_order = 1, .source_hint = {}, .destination_hint = {}, .flags = 0};
  std::size_t first = 0;
  std::size_t failed = 0;
  const cuda::Calls& calls = gpu_.calls();
  const cuda::CUresult result = calls.cuMemcpyBatchAsync_v2 != nullptr
                                    ? calls.cuMemcpyBatchAsync_v2(to_.data(), from_.data(), sizes_.data(), slots.size(),
                                                                  &attributes, &first, 1, stream_.get())
                                    : calls.cuMemcpyBatchAsync(to_.data(), from_.data(), sizes_.data(), slots.size(),
                                                               &attributes, &first, 1, &failed, stream_.get());
  gpu_.check(result, "cuMemcpyBatchAsync");
}

void GpuStream::by_kernel(std::span<const std::uint32_t> slots) {
  std::memcpy(picks_->data(), slots.data(), slots.size_bytes());
  copy(picked_.get(), picks_->data(), slots.size_bytes());
  gpu_.gather(stream_.get(), address(), source_.device, picked_.get(), source_.stride,
              static_cast<unsigned>(slots.size()));
}

void GpuStream::staged(std::span<const std::uint32_t> slots) {
  std::byte* to = staging_->data();
  for (const std::uint32_t slot : slots) {
    std::memcpy(to, sample(slot), source_.bytes);
    to += source_.stride;
  }
  copy(address(), staging_->data(), slots.size() * source_.stride);
}

const std::byte* GpuStream::read_back(std::size_t bytes) {
  back_.resize(batch_ * source_.stride);
  const cuda::Current current(*gpu_.context());
  gpu_.check(gpu_.calls().cuMemcpyDtoHAsync(back_.data(), address(), bytes, stream_.get()), "cuMemcpyDtoHAsync");
  gpu_.wait(stream_.get());
  return back_.data();
}

}  // namespace lanewise::loadtest
