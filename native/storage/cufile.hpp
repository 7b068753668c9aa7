// NVIDIA's cuFile, opened at run time: between a file and GPU memory, directly or in its compat mode. Types and
// values are those of cufile.h since CUDA 11.8, declared here so that nothing of CUDA is needed to build.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda/api.hpp"

namespace lanewise::storage {

class CuFile {
 public:
  using Handle = void*;

  // The library, its driver opened; host::Failure if it is not there or refuses. The context must be current.
  explicit CuFile(const std::string& library);
  ~CuFile();
  CuFile(const CuFile&) = delete;
  CuFile& operator=(const CuFile&) = delete;

  Handle add(int file) const;
  void remove(Handle handle) const { deregister_(handle); }
  bool pin(cuda::CUdeviceptr data, std::size_t bytes) const;
  void unpin(cuda::CUdeviceptr data) const { buffer_deregister_(at(data)); }
  // Bytes moved, or -1 and errno; host::Failure for cuFile's own errors.
  ssize_t read(Handle handle, cuda::CUdeviceptr data, std::size_t bytes, off_t offset, off_t data_offset) const;
  ssize_t write(Handle handle, cuda::CUdeviceptr data, std::size_t bytes, off_t offset, off_t data_offset) const;

  // "cuFile, nvidia-fs" or "cuFile in COMPAT MODE: ..."
  std::string how() const;

 private:
  struct Error {
    int code;
    int cuda;
  };
  struct Description {
    int type;
    union {
      int file;
      void* handle;
    } of;
    const void* operations;
  };
  struct Properties {
    struct {
      unsigned major, minor;
      std::size_t poll_threshold, most_direct;
      unsigned status, control;
    } driver;
    unsigned features, most_cache, buffer_cache, most_pinned, most_batch, batch_timeout;
    std::uint64_t later_versions[16];
  };

  static const void* at(cuda::CUdeviceptr data) { return reinterpret_cast<const void*>(data); }
  template <typename Function>
  void find(void* library, const char* symbol, Function& function);
  static void check(Error error, const std::string& call);

  Error (*open_)() = nullptr;
  Error (*close_)() = nullptr;
  Error (*properties_)(Properties*) = nullptr;
  Error (*register_)(Handle*, Description*) = nullptr;
  void (*deregister_)(Handle) = nullptr;
  Error (*buffer_register_)(const void*, std::size_t, int) = nullptr;
  Error (*buffer_deregister_)(const void*) = nullptr;
  ssize_t (*read_)(Handle, void*, std::size_t, off_t, off_t) = nullptr;
  ssize_t (*write_)(Handle, const void*, std::size_t, off_t, off_t) = nullptr;
};

}  // namespace lanewise::storage
