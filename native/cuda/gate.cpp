#include "cuda/gate.hpp"

#include <atomic>
#include <cstdint>
#include <string>

#include "host/failure.hpp"

namespace lanewise::cuda {

namespace {

constexpr std::size_t kTimedOutAt = 128;  // on a cache line of its own

std::atomic_ref<std::uint32_t> word(const Pinned& memory, std::size_t offset) {
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(memory.data() + offset));
}

}  // namespace

Gate::Gate(const std::shared_ptr<const Context>& context) : memory_(context, 4096, host::kAnyNode) { close(); }

void Gate::close() {
  word(memory_, kTimedOutAt).store(0);
  word(memory_, 0).store(0);
}

void Gate::hold(const Gpu& gpu, CUstream stream) const {
  const CUdeviceptr at = memory_.seen_by(*gpu.context());
  gpu.spin(stream, at, at + kTimedOutAt, std::chrono::nanoseconds(kLongest).count());
}

void Gate::open() { word(memory_, 0).store(1); }

bool Gate::in_time() const { return word(memory_, kTimedOutAt).load() == 0; }

void Gate::check_in_time() const {
  if (in_time()) return;
  throw host::Failure("the flows were held too long: not all was queued within " + std::to_string(kLongest.count()) +
                          " s, so they did not start together",
                      "measure fewer copies or fewer flows at once; without P2P the driver may block while it queues");
}

Settled::~Settled() {
  gate_.open();
  for (const auto& [gpu, stream] : streams_) {
    CUcontext popped = nullptr;
    if (gpu->calls().cuCtxPushCurrent(gpu->context()->handle()) != kSuccess) continue;  // the driver has shut down
    gpu->calls().cuStreamSynchronize(stream);
    gpu->calls().cuCtxPopCurrent(&popped);
  }
}

}  // namespace lanewise::cuda
