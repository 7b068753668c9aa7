// Streams, events, copies.
#include <algorithm>
#include <cstring>

#include "world.hpp"

using namespace fake;

namespace {

Stream* known(CUstream stream) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  return w.streams.contains(reinterpret_cast<Stream*>(stream)) ? reinterpret_cast<Stream*>(stream) : nullptr;
}

Event* known(CUevent event) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  return w.events.contains(reinterpret_cast<Event*>(event)) ? reinterpret_cast<Event*>(event) : nullptr;
}

// A copy between memory that may be pageable: then it happens as soon as the stream gets there, and is waited for.
CUresult copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  const bool pageable = holder(to, bytes) == -2 || holder(from, bytes) == -2;
  const CUresult result = submit(stream, [=](Stream& on) { move(on, to, from, bytes); });
  if (result == kSuccess && pageable) reinterpret_cast<Stream*>(stream)->drain();
  return result;
}

bool is_of_gpu(CUdeviceptr at, std::size_t bytes) {
  return holder(at, bytes) >= 0;
}

}  // namespace

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  FAKE(cuStreamCreate);
  if (current() == -2 || flags != kStreamNonBlocking) return kInvalidContext;
  auto* made = new Stream(current());
  World& w = world();
  const std::scoped_lock hold(w.lock);
  w.streams.insert(made);
  *stream = reinterpret_cast<CUstream>(made);
  return kSuccess;
}

CUresult cuStreamSynchronize(CUstream handle) {
  Stream* stream = known(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (current() == -2) return kInvalidContext;
  stream->drain();
  FAKE(cuStreamSynchronize);  // what fails here has ended all the same
  World& w = world();
  const std::scoped_lock hold(w.lock);
  w.now = std::max(w.now, stream->now);
  return w.sticky;
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  Stream* stream = known(handle);
  if (stream == nullptr) return kInvalidHandle;
  stream->drain();
  {
    World& w = world();
    const std::scoped_lock hold(w.lock);
    w.streams.erase(stream);
  }
  delete stream;
  return kSuccess;
}

CUresult cuEventCreate(CUevent* event, unsigned) {
  FAKE(cuEventCreate);
  if (current() == -2) return kInvalidContext;
  auto* made = new Event{.device = current()};
  World& w = world();
  const std::scoped_lock hold(w.lock);
  w.events.insert(made);
  *event = reinterpret_cast<CUevent>(made);
  return kSuccess;
}

CUresult cuEventRecord(CUevent handle, CUstream stream) {
  FAKE(cuEventRecord);
  Event* event = known(handle);
  if (event == nullptr || known(stream) == nullptr || event->device != known(stream)->device) return kInvalidHandle;
  {
    World& w = world();
    const std::scoped_lock hold(w.lock);
    event->pending = true;
  }
  return submit(stream, [event](Stream& on) {
    World& w = world();
    const std::scoped_lock hold(w.lock);
    if (!w.events.contains(event)) return;  // destroyed meanwhile, which CUDA allows
    event->at = on.now;
    event->recorded = true;
    event->pending = false;
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  FAKE(cuEventSynchronize);
  const Event* event = known(handle);
  if (event == nullptr) return kInvalidHandle;
  if (current() == -2) return kInvalidContext;
  World& w = world();
  while (true) {
    {
      const std::scoped_lock hold(w.lock);
      if (!event->pending) return w.sticky;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent first, CUevent second) {
  FAKE(cuEventElapsedTime);
  const Event* start = known(first);
  const Event* end = known(second);
  if (current() == -2) return kInvalidContext;
  if (start == nullptr || end == nullptr || start->device != end->device) return kInvalidHandle;
  if (!start->recorded || !end->recorded) return kInvalidHandle;
  if (start->pending || end->pending) return kNotReady;
  *milliseconds = static_cast<float>((end->at - start->at) * 1e3);
  return kSuccess;
}

CUresult cuEventDestroy_v2(CUevent handle) {
  Event* event = known(handle);
  if (event == nullptr) return kInvalidHandle;
  World& w = world();
  const std::scoped_lock hold(w.lock);
  w.events.erase(event);
  delete event;
  return kSuccess;
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, std::size_t bytes, CUstream stream) {
  FAKE(cuMemsetD8Async);
  if (!is_of_gpu(at, bytes)) return kInvalidValue;
  return submit(stream, [=](Stream&) { std::memset(reinterpret_cast<void*>(at), value, bytes); });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  FAKE(cuMemcpyHtoDAsync);
  if (!is_of_gpu(to, bytes)) return kInvalidValue;
  return copy(to, reinterpret_cast<CUdeviceptr>(from), bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  FAKE(cuMemcpyDtoHAsync);
  if (!is_of_gpu(from, bytes)) return kInvalidValue;
  return copy(reinterpret_cast<CUdeviceptr>(to), from, bytes, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  FAKE(cuMemcpyDtoDAsync);
  return is_of_gpu(to, bytes) && is_of_gpu(from, bytes) ? copy(to, from, bytes, stream) : kInvalidValue;
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           std::size_t bytes, CUstream stream) {
  FAKE(cuMemcpyPeerAsync);
  if (holder(to, bytes) != device_of(to_context) || holder(from, bytes) != device_of(from_context)) {
    return kInvalidValue;
  }
  const bool peers = reaches(current(), device_of(to_context)) && reaches(current(), device_of(from_context));
  if (!peers && world().config.staged_waits) reinterpret_cast<Stream*>(stream)->drain();
  return copy(to, from, bytes, stream);
}
}
