// Devices, contexts, memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "world.hpp"

using namespace fake;

namespace {

bool is_device(CUdevice device) {
  return device >= 0 && device < world().config.gpus;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) {
  World& w = world();
  {
    const std::scoped_lock hold(w.lock);
    configure();
  }
  FAKE(cuInit);
  return w.config.gpus == 0 ? CUresult{kNoDevice} : CUresult{kSuccess};
}

CUresult cuDriverGetVersion(int* version) {
  FAKE(cuDriverGetVersion);
  *version = world().config.version;
  return kSuccess;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  static const std::map<CUresult, const char*> texts{
      {kOutOfMemory, "out of memory"},
      {kNoDevice, "no CUDA-capable device is detected"},
      {kInvalidPtx, "a PTX JIT compilation failed"},
      {kInvalidContext, "invalid device context"},
      {kIllegalAddress, "an illegal memory access was encountered"},
      {kUnknown, "unknown error"},
  };
  const auto found = texts.find(error);
  *text = found == texts.end() ? nullptr : found->second;
  return found == texts.end() ? kInvalidValue : CUresult{kSuccess};
}

CUresult cuDeviceGetCount(int* count) {
  FAKE(cuDeviceGetCount);
  *count = world().config.gpus;
  return kSuccess;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FAKE(cuDeviceGet);
  if (!is_device(ordinal)) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  FAKE(cuDeviceGetName);
  std::snprintf(name, static_cast<std::size_t>(length), "Fake GPU");
  return kSuccess;
}

CUresult cuDeviceGetPCIBusId(char* name, int length, CUdevice device) {
  FAKE(cuDeviceGetPCIBusId);
  std::snprintf(name, static_cast<std::size_t>(length), "FA4E:%02X:00.0", 0x1B + device);
  return kSuccess;
}

CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice) {
  FAKE(cuDeviceGetAttribute);
  const Config& config = world().config;
  const std::map<int, int> values{{kMultiprocessorCount, 4},
                                  {kAsyncEngineCount, 3},
                                  {kCapabilityMajor, 9},
                                  {kCapabilityMinor, 0},
                                  {kGpuDirectRdmaFlushOptions, config.rdma_flushes},
                                  {kGpuDirectRdmaWritesOrdering, config.rdma_ordering},
                                  {kDmaBufSupported, config.dma_buf ? 1 : 0},
                                  {kHostNumaId, 0}};
  *value = values.at(attribute);
  return kSuccess;
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) {
  FAKE(cuDeviceTotalMem);
  *bytes = world().config.memory;
  return kSuccess;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKE(cuDevicePrimaryCtxRetain);
  World& w = world();
  const std::scoped_lock hold(w.lock);
  ++w.contexts[device];
  *context = context_of(device);
  return kSuccess;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  if (--w.contexts[device] > 0) return kSuccess;
  w.contexts.erase(device);
  std::erase_if(w.peers, [device](const auto& pair) { return pair.first == device || pair.second == device; });
  return kSuccess;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  if (!w.contexts.contains(device_of(context))) return kInvalidContext;
  current_stack().push_back(device_of(context));
  return kSuccess;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (current() == -2) return kInvalidContext;
  *context = context_of(current());
  current_stack().pop_back();
  return kSuccess;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  FAKE(cuDeviceCanAccessPeer);
  *can = device != peer && !world().config.no_peer.contains({device, peer});
  return kSuccess;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned) {
  FAKE(cuCtxEnablePeerAccess);
  World& w = world();
  const std::scoped_lock hold(w.lock);
  if (w.config.no_peer.contains({current(), device_of(peer)})) return kPeerAccessUnsupported;
  return w.peers.insert({current(), device_of(peer)}).second ? CUresult{kSuccess} : kPeerAccessAlreadyEnabled;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  FAKE(cuCtxDisablePeerAccess);
  World& w = world();
  const std::scoped_lock hold(w.lock);
  return w.peers.erase({current(), device_of(peer)}) == 1 ? CUresult{kSuccess} : kPeerAccessNotEnabled;
}

CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  FAKE(cuMemGetInfo);
  if (current() == -2) return kInvalidContext;
  World& w = world();
  const std::scoped_lock hold(w.lock);
  *total = w.config.memory;
  *free = *total - w.used[current()];
  return kSuccess;
}

CUresult cuMemAlloc_v2(CUdeviceptr* at, std::size_t bytes) {
  FAKE(cuMemAlloc);
  if (current() == -2) return kInvalidContext;
  World& w = world();
  const std::scoped_lock hold(w.lock);
  if (bytes == 0) return kInvalidValue;
  if (w.used[current()] + bytes > w.config.memory) return kOutOfMemory;
  const int file = memfd_create("fake-gpu", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  *at = reinterpret_cast<CUdeviceptr>(memory);
  w.ranges[*at] = {bytes, current(), file};
  w.used[current()] += bytes;
  return kSuccess;
}

// As the driver does, waits for all that runs on the device.
CUresult cuMemFree_v2(CUdeviceptr at) {
  World& w = world();
  std::set<Stream*> streams;
  {
    const std::scoped_lock hold(w.lock);
    streams = w.streams;
  }
  for (Stream* stream : streams) {
    if (stream->device == current()) stream->drain();
  }
  const std::scoped_lock hold(w.lock);
  const auto found = w.ranges.find(at);
  if (found == w.ranges.end() || found->second.device != current()) return kInvalidValue;
  munmap(reinterpret_cast<void*>(at), found->second.bytes);
  close(found->second.file);
  w.used[current()] -= found->second.bytes;
  w.ranges.erase(found);
  return kSuccess;
}

// A file that who maps it shares the memory with: a range that begins with it, of whole pages.
CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr at, std::size_t bytes, int type, unsigned long long) {
  FAKE(cuMemGetHandleForAddressRange);
  World& w = world();
  const std::scoped_lock hold(w.lock);
  const auto found = w.ranges.find(at);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (type != kDmaBufHandle || found == w.ranges.end() || found->second.device != current()) return kInvalidValue;
  if (at % page != 0 || bytes % page != 0 || bytes > found->second.bytes || !w.config.dma_buf) return kInvalidValue;
  *static_cast<int*>(handle) = fcntl(found->second.file, F_DUPFD_CLOEXEC, 0);
  return kSuccess;
}

CUresult cuFlushGPUDirectRDMAWrites(int target, int scope) {
  FAKE(cuFlushGPUDirectRDMAWrites);
  if (current() == -2) return kInvalidContext;
  return target == kFlushCurrentContext && scope == kFlushToOwner ? CUresult{kSuccess} : kInvalidValue;
}

CUresult cuMemHostRegister_v2(void* at, std::size_t bytes, unsigned flags) {
  FAKE(cuMemHostRegister);
  if (current() == -2) return kInvalidContext;
  if ((flags & kRegisterPortable) == 0) return kInvalidValue;  // else pinned for one context only
  World& w = world();
  const std::scoped_lock hold(w.lock);
  w.ranges[reinterpret_cast<std::uint64_t>(at)] = {bytes, -1};
  return kSuccess;
}

CUresult cuMemHostUnregister(void* at) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  return w.ranges.erase(reinterpret_cast<std::uint64_t>(at)) == 1 ? CUresult{kSuccess} : kInvalidValue;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* host, unsigned) {
  FAKE(cuMemHostGetDevicePointer);
  if (current() == -2) return kInvalidContext;
  *device = reinterpret_cast<CUdeviceptr>(host);
  return holder(*device, 1) == -1 ? CUresult{kSuccess} : kInvalidValue;
}

// What is still held, by kind: for tests.
int fake_cuda_live(const char* kind) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  const std::map<std::string, std::size_t> live{
      {"contexts", w.contexts.size()}, {"memory", w.ranges.size()},  {"streams", w.streams.size()},
      {"events", w.events.size()},     {"modules", w.modules.size()}, {"peers", w.peers.size()},
      {"graphs", w.graphs.size()}};
  return static_cast<int>(live.at(kind));
}

int fake_cuda_calls(const char* call) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  return w.calls[call];
}
}
