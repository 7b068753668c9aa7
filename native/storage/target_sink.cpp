#include "storage/target_sink.hpp"

#include <algorithm>
#include <cstring>

namespace lanewise::storage {

TargetSink::TargetSink(const Job& job, Slots slots)
    : job_(job),
      stride_(slots.stride),
      straight_(!job.bounce &&
                std::all_of(job.targets.begin(), job.targets.end(), [](const Target& each) { return each.gpu < 0; })) {
  std::shared_ptr<const cuda::Driver> driver;
  for (const Target& target : job.targets) {
    Region region;
    if (target.gpu < 0) {
      region.host = std::make_unique<host::Memory>(target.bytes, job.node);
    } else {
      if (!driver) driver = std::make_shared<const cuda::Driver>(job.cuda);
      region.context = std::make_shared<const cuda::Context>(driver, target.gpu);
      region.device = cuda::allocate(region.context, target.bytes);
      for (std::size_t slot = 0; slot < slots.memory.size() / slots.stride; ++slot) {
        region.streams.push_back(cuda::make_stream(region.context));
      }
    }
    regions_.push_back(std::move(region));
  }
  if (!driver) return;
  if (job.bounce) staging_ = std::make_unique<host::Memory>(slots.memory.size(), job.node);
  register_with_driver(job.bounce ? *staging_ : slots.memory);
}

void TargetSink::register_with_driver(host::Memory& memory) {
  const auto gpu =
      std::find_if(regions_.begin(), regions_.end(), [](const Region& each) { return each.context != nullptr; });
  const cuda::Current current(*gpu->context);
  const auto result = gpu->context->calls().cuMemHostRegister(memory.data(), memory.size(),
                                                              cuda::kRegisterPortable | cuda::kRegisterDeviceMap);
  gpu->context->driver().check(result, "cuMemHostRegister", "the buffers that are read into",
                               "use a smaller --io or --depth, or allow more locked memory (ulimit -l)");
  registered_.push_back(&memory);
}

TargetSink::~TargetSink() {
  for (const Region& region : regions_) {
    if (region.context == nullptr || registered_.empty()) continue;
    if (region.context->calls().cuCtxPushCurrent(region.context->handle()) != cuda::kSuccess) return;
    for (host::Memory* memory : registered_) region.context->calls().cuMemHostUnregister(memory->data());
    registered_.clear();
    cuda::CUcontext popped = nullptr;
    region.context->calls().cuCtxPopCurrent(&popped);
  }
}

std::byte* TargetSink::straight(Io io) {
  const Place& place = job_.places[io.index];
  return regions_[place.target].host->data() + place.at;
}

void TargetSink::take(std::size_t worker, Io io, const std::byte* from, std::size_t bytes) {
  const Place& place = job_.places[io.index];
  if (const Region& region = regions_[place.target]; region.host) {
    std::memcpy(region.host->data() + place.at, from, bytes);
    return;
  }
  start(worker, io, from, bytes);
  wait(io);
}

void TargetSink::start(std::size_t, Io io, const std::byte* from, std::size_t bytes) {
  const Place& place = job_.places[io.index];
  const Region& region = regions_[place.target];
  if (staging_) {
    std::byte* pinned = staging_->data() + io.slot * stride_;
    std::memcpy(pinned, from, bytes);
    from = pinned;
  }
  const cuda::Current current(*region.context);
  const cuda::CUstream stream = region.streams[io.slot].get();
  region.context->check(region.context->calls().cuMemcpyHtoDAsync(device_at(region, place), from, bytes, stream),
                        "cuMemcpyHtoDAsync");
}

void TargetSink::wait(Io io) {
  const Region& region = regions_[job_.places[io.index].target];
  const cuda::Current current(*region.context);
  region.context->check(region.context->calls().cuStreamSynchronize(region.streams[io.slot].get()),
                        "cuStreamSynchronize");
}

void TargetSink::give(std::size_t, Io io, std::byte* to, std::size_t bytes) {
  const Place& place = job_.places[io.index];
  const Region& region = regions_[place.target];
  if (region.host) {
    std::memcpy(to, region.host->data() + place.at, bytes);
    return;
  }
  const cuda::Current current(*region.context);
  const cuda::CUstream stream = region.streams[io.slot].get();
  const auto& calls = region.context->calls();
  region.context->check(calls.cuMemcpyDtoHAsync(to, device_at(region, place), bytes, stream), "cuMemcpyDtoHAsync");
  region.context->check(calls.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

}  // namespace lanewise::storage
