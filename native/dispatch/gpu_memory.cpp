#include "dispatch/gpu_memory.hpp"

#include <unistd.h>

#include "host/failure.hpp"
#include "network/verbs_context.hpp"

namespace lanewise::dispatch {

namespace {

std::shared_ptr<const cuda::Driver> open_driver(const std::string& library) {
  return std::make_shared<cuda::Driver>(library, "LAZY");  // as a load test opens it
}

int attribute(const cuda::Driver& driver, int ordinal, cuda::Attribute which) {
  cuda::CUdevice device = 0;
  int value = 0;
  driver.check(driver.calls().cuDeviceGet(&device, ordinal), "cuDeviceGet");
  driver.check(driver.calls().cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

bool is_ordered(const cuda::Driver& driver, int ordinal) {
  return attribute(driver, ordinal, cuda::kGpuDirectRdmaWritesOrdering) >= cuda::kWritesOrderedForOwner;
}

void check_gpu(const cuda::Driver& driver, int ordinal) {
  const std::string gpu = "GPU " + std::to_string(ordinal);
  if (attribute(driver, ordinal, cuda::kDmaBufSupported) == 0) {
    throw host::Failure(gpu + " exports no memory as dma-buf (CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED is 0)",
                        "it takes NVIDIA's open kernel modules and Linux 5.12 or later");
  }
  const int flushes = attribute(driver, ordinal, cuda::kGpuDirectRdmaFlushOptions);
  if (!is_ordered(driver, ordinal) && (flushes & cuda::kFlushByHost) == 0) {
    throw host::Failure(gpu + " neither orders writes of other devices nor flushes them for the host",
                        "let samples arrive in host memory: --gpu-memory off");
  }
}

void check_verbs_library() {
#ifdef LANEWISE_VERBS
  network::check_dma_buf_support();
#else
  throw host::Failure("this build of Lanewise has no verbs", "install libibverbs-dev (rdma-core), then Lanewise again");
#endif
}

}  // namespace

void check_gpu_memory(const std::string& driver_library, int ordinal) {
  check_gpu(*open_driver(driver_library), ordinal);
  check_verbs_library();
}

GpuMemory::GpuMemory(const std::string& driver_library, int ordinal, std::size_t bytes) {
  const auto driver = open_driver(driver_library);
  check_gpu(*driver, ordinal);
  check_verbs_library();
  needs_flush_ = !is_ordered(*driver, ordinal);
  const auto context = std::make_shared<cuda::Context>(driver, ordinal);
  const cuda::Current current(*context);
  if (const std::size_t free = context->free_bytes(); 2 * bytes > free) {
    throw host::Failure(std::to_string(bytes >> 20) + " MiB for queries in flight are more than half of the " +
                            std::to_string(free >> 20) + " MiB free on " + context->name(),
                        "fewer --connections, or a smaller --depth");
  }
  // What is exported begins and ends with a page of the host.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  size_ = (bytes + page - 1) / page * page;
  memory_ = cuda::allocate(context, size_ + page);
  const cuda::CUdeviceptr begin = (memory_.get() + page - 1) / page * page;
  data_ = reinterpret_cast<std::byte*>(begin);
  context->check(context->calls().cuMemGetHandleForAddressRange(&fd_, begin, size_, cuda::kDmaBufHandle, 0),
                 "cuMemGetHandleForAddressRange");
}

GpuMemory::~GpuMemory() { close(fd_); }

}  // namespace lanewise::dispatch
