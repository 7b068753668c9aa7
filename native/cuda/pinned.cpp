#include "cuda/pinned.hpp"

namespace lanewise::cuda {

Pinned::Pinned(std::shared_ptr<const Context> context, std::size_t bytes, int node)
    : context_(std::move(context)), memory_(bytes, node) {
  const Current current(*context_);
  const CUresult result =
      context_->calls().cuMemHostRegister(memory_.data(), memory_.size(), kRegisterPortable | kRegisterDeviceMap);
  context_->driver().check(result, "cuMemHostRegister",
                           std::to_string(memory_.size() >> 20) + " MiB of host memory for " + context_->name(),
                           "ask for less, or allow more locked memory (ulimit -l, a container's limit)");
}

Pinned::~Pinned() {
  const Calls& calls = context_->calls();
  if (calls.cuCtxPushCurrent(context_->handle()) != kSuccess) return;  // the driver has shut down
  calls.cuMemHostUnregister(memory_.data());
  CUcontext popped = nullptr;
  calls.cuCtxPopCurrent(&popped);
}

CUdeviceptr Pinned::seen_by(const Context& context) const {
  const Current current(context);
  CUdeviceptr at = 0;
  context.check(context.calls().cuMemHostGetDevicePointer(&at, memory_.data(), 0), "cuMemHostGetDevicePointer");
  return at;
}

}  // namespace lanewise::cuda
