#include "cuda/driver.hpp"

#include <dlfcn.h>

#include <cstdlib>

#include "host/failure.hpp"

namespace lanewise::cuda {

namespace {

constexpr int kOldestDriver = 11080;  // the first that reads the kernels' PTX

std::string version_text(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

template <class Function>
void find(void* library, const std::string& name, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (function == nullptr) {
    throw host::Failure(name + " has no " + symbol, "install an NVIDIA driver of CUDA 11.8 or later (520 or later)");
  }
}

template <class Function>
void find_if_there(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
}

Calls open(const std::string& name) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    throw host::Failure("the CUDA driver cannot be opened: " + std::string(why == nullptr ? name : why),
                        "measuring GPUs needs NVIDIA's driver (nvidia-smi shows whether it is there)");
  }
  Calls calls;
#define LANEWISE_CUDA_FIND(field, symbol, parameters) find(library, name, symbol, calls.field);
  LANEWISE_CUDA_CALLS(LANEWISE_CUDA_FIND)
#undef LANEWISE_CUDA_FIND
  find_if_there(library, "cuMemcpyBatchAsync", calls.cuMemcpyBatchAsync);
  find_if_there(library, "cuMemcpyBatchAsync_v2", calls.cuMemcpyBatchAsync_v2);
  return calls;
}

// What to do next, by the driver's error.
const char* advice(CUresult result) {
  switch (result) {
    case kOutOfMemory:
      return "ask for smaller copies, or free memory of that GPU (nvidia-smi shows who holds it)";
    case kNoDevice:
      return "no GPU is visible to this process: see nvidia-smi and CUDA_VISIBLE_DEVICES";
    case kDeviceUnavailable:
      return "another process holds that GPU for itself (nvidia-smi -q -d COMPUTE shows the compute mode)";
    case kPeerAccessUnsupported:
      return "measure these two with P2P off; nvidia-smi topo -p2p r shows which pairs are peers";
    case kTooManyPeers:
      return "a GPU has at most eight peers without NVSwitch: measure fewer pairs together";
    case kNotPermitted:
      return "this process may not do that on this GPU: see its container's or its cgroup's rights";
    case kSystemNotReady:
      return "GPUs with NVSwitch need their fabric manager: systemctl status nvidia-fabricmanager";
    case kSystemDriverMismatch:
      return "the driver's library and its kernel module differ: restart the machine";
    case kUnsupportedPtxVersion:
      return "install an NVIDIA driver of CUDA 11.8 or later (520 or later)";
    default:
      return "see nvidia-smi, and the kernel's log for NVRM and Xid";
  }
}

}  // namespace

Driver::Driver(const std::string& library, const std::string& module_loading) : calls_(open(library)) {
  // By default a GPU's streams share 8 hardware queues; flows that share one would wait for each other. cuInit reads
  // the variable once; a value that the user has set stays.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  setenv("CUDA_MODULE_LOADING", module_loading.c_str(), 0);
  check(calls_.cuInit(0), "cuInit");
  check(calls_.cuDriverGetVersion(&version_), "cuDriverGetVersion");
  if (version_ < kOldestDriver) {
    throw host::Failure("the CUDA driver is of " + version_text(version_) + "; Lanewise needs " +
                            version_text(kOldestDriver) + " or later",
                        "install an NVIDIA driver 520 or later");
  }
  check(calls_.cuDeviceGetCount(&device_count_), "cuDeviceGetCount");
  if (device_count_ == 0) throw host::Failure("the CUDA driver has no GPU", advice(kNoDevice));
}

std::string Driver::says(CUresult result) const {
  const char* text = nullptr;
  if (calls_.cuGetErrorString(result, &text) == kSuccess && text != nullptr) return text;
  return "error " + std::to_string(result);
}

void Driver::check(CUresult result, const char* call, const std::string& where, const std::string& hint) const {
  if (result == kSuccess) return;
  throw host::Failure(std::string(call) + ": " + says(result) + (where.empty() ? "" : " (" + where + ")"),
                      hint.empty() ? advice(result) : hint);
}

Context::Context(std::shared_ptr<const Driver> driver, int ordinal) : driver_(std::move(driver)), ordinal_(ordinal) {
  if (ordinal < 0 || ordinal >= driver_->device_count()) {
    throw host::Failure("no " + name() + " here: the driver has " + std::to_string(driver_->device_count()),
                        "GPUs count from 0; CUDA_VISIBLE_DEVICES may hide some");
  }
  check(calls().cuDeviceGet(&device_, ordinal), "cuDeviceGet");
  check(calls().cuDevicePrimaryCtxRetain(&handle_, device_), "cuDevicePrimaryCtxRetain");
}

Context::~Context() { calls().cuDevicePrimaryCtxRelease(device_); }

std::size_t Context::free_bytes() const {
  const Current current(*this);
  std::size_t free = 0;
  std::size_t total = 0;
  check(calls().cuMemGetInfo(&free, &total), "cuMemGetInfo");
  return free;
}

Stream make_stream(const std::shared_ptr<const Context>& context) {
  const Current current(*context);
  CUstream handle = nullptr;
  context->check(context->calls().cuStreamCreate(&handle, kStreamNonBlocking), "cuStreamCreate");
  return {context, handle};
}

Event make_event(const std::shared_ptr<const Context>& context, unsigned flags) {
  const Current current(*context);
  CUevent handle = nullptr;
  context->check(context->calls().cuEventCreate(&handle, flags), "cuEventCreate");
  return {context, handle};
}

DeviceMemory allocate(const std::shared_ptr<const Context>& context, std::size_t bytes) {
  const Current current(*context);
  CUdeviceptr at = 0;
  const CUresult result = context->calls().cuMemAlloc(&at, bytes);
  if (result != kSuccess) {
    const auto mib = [](std::size_t size) { return std::to_string(size >> 20) + " MiB"; };
    context->driver().check(result, "cuMemAlloc",
                            context->name() + ", " + mib(bytes) + " asked, " + mib(context->free_bytes()) + " free");
  }
  return {context, at};
}

}  // namespace lanewise::cuda
