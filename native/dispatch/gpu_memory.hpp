// Memory of a GPU that an RDMA device writes to, by dma-buf (GPUDirect RDMA without nvidia-peermem). It has never run
// on RDMA hardware: tests have a CUDA driver and a libibverbs without devices.
#pragma once

#include <string>

#include "cuda/driver.hpp"
#include "dispatch/shared_memory.hpp"

namespace lanewise::dispatch {

// host::Failure says what the CUDA driver, that GPU or libibverbs lacks for it. A NIC's driver can still refuse.
void check_gpu_memory(const std::string& driver_library, int ordinal);

class GpuMemory : public SlotMemory {
 public:
  // host::Failure where something is missing, or `bytes` are more than half of the GPU's free memory.
  GpuMemory(const std::string& driver_library, int ordinal, std::size_t bytes);
  ~GpuMemory() override;
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  std::byte* data() const override { return data_; }  // the GPU's address: the CPU cannot read there
  std::size_t size() const override { return size_; }
  int dma_buf() const { return fd_; }  // of all of it
  // Whether the GPU sees what was written only after cuFlushGPUDirectRDMAWrites.
  bool needs_flush() const { return needs_flush_; }

 private:
  cuda::DeviceMemory memory_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int fd_ = -1;
  bool needs_flush_ = false;
};

using GpuMemoryPointer = std::shared_ptr<GpuMemory>;

}  // namespace lanewise::dispatch
