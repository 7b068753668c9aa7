// An RDMA device as this process has it: opened once, with one protection domain, so that memory which several
// connections read is registered once for all of them.
#pragma once

#include "network/verbs_library.hpp"

#ifdef LANEWISE_VERBS
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "host/failure.hpp"

namespace lanewise::network {

template <typename T>
using VerbsOwned = std::unique_ptr<T, std::function<void(T*)>>;

// host::Failure with this cause and hint unless `error` is 0.
void check_verbs(int error, const char* cause, const char* hint);

class VerbsContext {
 public:
  // The device's, which all that use it share; host::Failure where there is no such device.
  static std::shared_ptr<VerbsContext> of(const std::string& device);
  VerbsContext(const VerbsContext&) = delete;
  VerbsContext& operator=(const VerbsContext&) = delete;

  const VerbsLibrary& library() const { return ibv_; }
  ibv_context* handle() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }

  // host::Failure where the memory cannot be registered; it must outlive the region, and the context too.
  VerbsOwned<ibv_mr> region(const void* data, std::size_t bytes, int access) const;
  // Of a dma-buf from `offset` on: memory of another device, which is at `address` to who writes to it. The two are
  // equally far behind a page's begin.
  VerbsOwned<ibv_mr> dma_buf_region(int fd, std::uint64_t offset, std::uint64_t address, std::size_t bytes,
                                    int access) const;
  // As region(), of memory that others register with the same access: one region, until the last lets it go.
  std::shared_ptr<ibv_mr> shared_region(const void* data, std::size_t bytes, int access);

 private:
  explicit VerbsContext(const std::string& device);

  using Registration = std::tuple<const void*, std::size_t, int>;  // memory and access

  const VerbsLibrary& ibv_;
  std::string name_;
  VerbsOwned<ibv_context> context_;
  VerbsOwned<ibv_pd> domain_;
  std::mutex mutex_;
  std::map<Registration, std::weak_ptr<ibv_mr>> shared_;
};

// host::Failure where libibverbs is not installed, or registers no dma-buf.
void check_dma_buf_support();

// The object; host::Failure with `what` and errno where it is null.
template <typename T>
T* required(T* object, const char* what) {
  if (object == nullptr)
    throw host::system_failure(what, errno, "ulimit -l must allow the memory; try fewer queue pairs");
  return object;
}

}  // namespace lanewise::network
#endif
