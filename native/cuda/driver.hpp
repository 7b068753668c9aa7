// The CUDA driver library, opened at run time, and objects that give back what it handed out.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "cuda/api.hpp"

namespace lanewise::cuda {

// libcuda, initialised. host::Failure if it is not there, too old, or has no GPU. Never closed: it lives until exit.
class Driver {
 public:
  // `module_loading` is CUDA_MODULE_LOADING for cuInit, which reads it once a process: EAGER, as a module that is
  // loaded at its first use waits until the device is idle, which it never is while a kernel waits at the gate; LAZY
  // where no gate is used, as EAGER loads thousands of kernels of a model's library that never run. What the user has
  // set stays.
  explicit Driver(const std::string& library, const std::string& module_loading = "EAGER");

  const Calls& calls() const { return calls_; }
  int version() const { return version_; }  // 13000 is CUDA 13.0
  int device_count() const { return device_count_; }

  // Throws host::Failure("cuMemAlloc: out of memory (GPU 0, 512 MiB asked)", hint) unless `result` is success.
  // Without a hint of its own, the one that suits the error.
  void check(CUresult result, const char* call, const std::string& where = {}, const std::string& hint = {}) const;

  // "out of memory"
  std::string says(CUresult result) const;

 private:
  Calls calls_;
  int version_ = 0;
  int device_count_ = 0;
};

// A GPU's primary context, kept for as long as this lives.
class Context {
 public:
  Context(std::shared_ptr<const Driver> driver, int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return *driver_; }
  const Calls& calls() const { return driver_->calls(); }
  int ordinal() const { return ordinal_; }
  CUdevice device() const { return device_; }
  CUcontext handle() const { return handle_; }
  std::string name() const { return "GPU " + std::to_string(ordinal_); }
  std::size_t free_bytes() const;
  void check(CUresult result, const char* call) const { driver_->check(result, call, name()); }

 private:
  std::shared_ptr<const Driver> driver_;
  int ordinal_;
  CUdevice device_ = 0;
  CUcontext handle_ = nullptr;
};

// Makes a context the thread's current one until the end of the scope.
class Current {
 public:
  explicit Current(const Context& context) : context_(context) {
    context.check(context.calls().cuCtxPushCurrent(context.handle()), "cuCtxPushCurrent");
  }
  ~Current() {
    CUcontext popped = nullptr;
    context_.calls().cuCtxPopCurrent(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Context& context_;
};

// What a context handed out, given back at the end; failures of giving back are of no use to anybody by then.
template <class Handle, void (*Release)(const Calls&, Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(std::shared_ptr<const Context> context, Handle handle) : context_(std::move(context)), handle_(handle) {}
  ~Owned() { reset(); }
  Owned(Owned&& other) noexcept : context_(std::move(other.context_)), handle_(other.handle_) { other.handle_ = {}; }
  Owned& operator=(Owned&& other) noexcept {
    if (this != &other) {
      reset();
      context_ = std::move(other.context_);
      handle_ = other.handle_;
      other.handle_ = {};
    }
    return *this;
  }

  Handle get() const { return handle_; }
  const Context& context() const { return *context_; }

 private:
  void reset() noexcept {
    if (context_ == nullptr || handle_ == Handle{}) return;
    const Calls& calls = context_->calls();
    if (calls.cuCtxPushCurrent(context_->handle()) != kSuccess) return;  // the driver has shut down
    Release(calls, handle_);
    CUcontext popped = nullptr;
    calls.cuCtxPopCurrent(&popped);
    handle_ = {};
  }

  std::shared_ptr<const Context> context_;
  Handle handle_{};
};

// What runs on a stream ends before the stream does: nobody may take memory away under it.
inline void release_stream(const Calls& calls, CUstream stream) {
  calls.cuStreamSynchronize(stream);
  calls.cuStreamDestroy(stream);
}
inline void release_event(const Calls& calls, CUevent event) { calls.cuEventDestroy(event); }
inline void release_memory(const Calls& calls, CUdeviceptr at) { calls.cuMemFree(at); }
inline void release_module(const Calls& calls, CUmodule module) { calls.cuModuleUnload(module); }

using Stream = Owned<CUstream, release_stream>;
using Event = Owned<CUevent, release_event>;
using DeviceMemory = Owned<CUdeviceptr, release_memory>;
using Module = Owned<CUmodule, release_module>;

Stream make_stream(const std::shared_ptr<const Context>& context);
Event make_event(const std::shared_ptr<const Context>& context, unsigned flags = kEventDefault);
DeviceMemory allocate(const std::shared_ptr<const Context>& context, std::size_t bytes);

}  // namespace lanewise::cuda
