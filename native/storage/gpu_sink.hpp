// GPU memory at the end of a path: filled and emptied by copies over registered host memory, or by cuFile.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "cuda/driver.hpp"
#include "host/memory.hpp"
#include "storage/cufile.hpp"
#include "storage/sink.hpp"

namespace lanewise::storage {

struct Slots {
  host::Memory& memory;  // of the host, all slots one after the other
  std::size_t stride;
  std::size_t workers;
};

class GpuSink : public Sink {
 public:
  GpuSink(const std::string& library, int ordinal, Slots slots);
  ~GpuSink() override;

  void enter(std::size_t worker) override;
  void take(std::size_t worker, Io io, const std::byte* from, std::size_t bytes) override;
  void give(std::size_t worker, Io io, std::byte* to, std::size_t bytes) override;

 protected:
  const cuda::Context& context() const { return *context_; }
  cuda::CUdeviceptr data() const { return data_.get(); }
  std::size_t stride() const { return slots_.stride; }

 private:
  std::shared_ptr<const cuda::Context> context_;
  const Slots slots_;
  cuda::DeviceMemory data_;
  std::vector<cuda::Stream> streams_;  // one a thread, so that copies of several go at the same time
};

class CuFileSink : public GpuSink {
 public:
  CuFileSink(const std::string& cuda, const std::string& cufile, int ordinal, Slots slots,
             const std::vector<int>& files);
  ~CuFileSink() override;

  void take(std::size_t, Io, const std::byte*, std::size_t) override {}  // it is there already
  void put(std::size_t worker, Io io, const std::byte* from, std::size_t bytes) override {
    GpuSink::take(worker, io, from, bytes);
  }
  bool direct() const override { return true; }
  // Like pread and pwrite, of a slot in GPU memory; host::Failure for errors of cuFile's own.
  ssize_t read(std::uint32_t file, std::size_t slot, std::uint64_t at, std::size_t bytes, off_t offset);
  ssize_t write(std::uint32_t file, std::size_t slot, std::uint64_t at, std::size_t bytes, off_t offset);
  std::string how() const;

 private:
  std::shared_ptr<const CuFile> cufile_;
  std::vector<CuFile::Handle> handles_;
  bool registered_ = false;
};

}  // namespace lanewise::storage
