#include "cuda/pinned.hpp"

#include <cstdint>
#include <utility>

namespace lanewise::cuda {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Large buffers start on a huge page: those can only be whole, and a GPU then needs fewer translations as well.
std::size_t with_slack(std::size_t bytes) { return bytes < kHugePage ? bytes : bytes + kHugePage; }

std::byte* start_of(const host::Memory& memory, std::size_t bytes) {
  if (bytes < kHugePage) return memory.data();
  const std::size_t over = reinterpret_cast<std::uintptr_t>(memory.data()) % kHugePage;
  return memory.data() + (over == 0 ? 0 : kHugePage - over);
}

}  // namespace

Pinned::Pinned(std::shared_ptr<const Context> context, std::size_t bytes, int node)
    : context_(std::move(context)),
      memory_(std::in_place, with_slack(bytes), node),
      data_(start_of(*memory_, bytes)),
      node_(node) {
  register_pages(bytes);
}

Pinned::Pinned(std::shared_ptr<const Context> context, std::byte* data, std::size_t bytes, int node)
    : context_(std::move(context)), data_(data), node_(node) {
  register_pages(bytes);
}

void Pinned::register_pages(std::size_t bytes) {
  const Current current(*context_);
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
  const CUresult result = context_->calls().cuMemHostRegister(data_, whole, kRegisterPortable | kRegisterDeviceMap);
  context_->driver().check(result, "cuMemHostRegister",
                           std::to_string(bytes >> 20) + " MiB of host memory for " + context_->name(),
                           "ask for less, or allow more locked memory (ulimit -l, a container's limit)");
}

Pinned::~Pinned() {
  const Calls& calls = context_->calls();
  if (calls.cuCtxPushCurrent(context_->handle()) != kSuccess) return;  // the driver has shut down
  calls.cuMemHostUnregister(data_);
  CUcontext popped = nullptr;
  calls.cuCtxPopCurrent(&popped);
}

CUdeviceptr Pinned::seen_by(const Context& context) const {
  const Current current(context);
  CUdeviceptr at = 0;
  context.check(context.calls().cuMemHostGetDevicePointer(&at, data_, 0), "cuMemHostGetDevicePointer");
  return at;
}

}  // namespace lanewise::cuda
