#include "storage/gpu_sink.hpp"

#include <cerrno>

#include "host/failure.hpp"

namespace lanewise::storage {

GpuSink::GpuSink(const std::string& library, int ordinal, Slots slots)
    : context_(std::make_shared<const cuda::Context>(std::make_shared<const cuda::Driver>(library), ordinal)),
      slots_(slots),
      data_(cuda::allocate(context_, slots.memory.size())),
      streams_(slots.workers) {
  const cuda::Current current(*context_);
  const auto result = context_->calls().cuMemHostRegister(slots.memory.data(), slots.memory.size(),
                                                          cuda::kRegisterPortable | cuda::kRegisterDeviceMap);
  context_->driver().check(result, "cuMemHostRegister", "the buffers that are read into",
                           "use a smaller --io or --depth, or allow more locked memory (ulimit -l)");
}

GpuSink::~GpuSink() {
  if (context_->calls().cuCtxPushCurrent(context_->handle()) != cuda::kSuccess) return;  // the driver has shut down
  context_->calls().cuMemHostUnregister(slots_.memory.data());
  cuda::CUcontext popped = nullptr;
  context_->calls().cuCtxPopCurrent(&popped);
}

void GpuSink::enter(std::size_t worker) {
  streams_[worker] = cuda::make_stream(context_);
  // For as long as this thread lives.
  context_->check(context_->calls().cuCtxPushCurrent(context_->handle()), "cuCtxPushCurrent");
}

void GpuSink::take(std::size_t worker, Io io, const std::byte* from, std::size_t bytes) {
  const cuda::CUstream stream = streams_[worker].get();
  const cuda::CUdeviceptr to = data() + io.slot * stride();
  context_->check(context_->calls().cuMemcpyHtoDAsync(to, from, bytes, stream), "cuMemcpyHtoDAsync");
  context_->check(context_->calls().cuStreamSynchronize(stream), "cuStreamSynchronize");
}

void GpuSink::give(std::size_t worker, Io io, std::byte* to, std::size_t bytes) {
  const cuda::CUstream stream = streams_[worker].get();
  const cuda::CUdeviceptr from = data() + io.slot * stride();
  context_->check(context_->calls().cuMemcpyDtoHAsync(to, from, bytes, stream), "cuMemcpyDtoHAsync");
  context_->check(context_->calls().cuStreamSynchronize(stream), "cuStreamSynchronize");
}

CuFileSink::CuFileSink(const std::string& cuda, const std::string& cufile, int ordinal, Slots slots,
                       const std::vector<int>& files)
    : GpuSink(cuda, ordinal, slots) {
  const cuda::Current current(context());
  cufile_ = std::make_shared<const CuFile>(cufile);
  try {
    for (const int file : files) handles_.push_back(cufile_->add(file));
  } catch (...) {
    for (const CuFile::Handle handle : handles_) cufile_->remove(handle);
    throw;
  }
  registered_ = cufile_->pin(data(), slots.memory.size());
}

CuFileSink::~CuFileSink() {
  if (context().calls().cuCtxPushCurrent(context().handle()) != cuda::kSuccess) return;
  if (registered_) cufile_->unpin(data());
  for (const CuFile::Handle handle : handles_) cufile_->remove(handle);
  cuda::CUcontext popped = nullptr;
  context().calls().cuCtxPopCurrent(&popped);
}

ssize_t CuFileSink::read(std::uint32_t file, std::size_t slot, std::uint64_t at, std::size_t bytes, off_t offset) {
  return cufile_->read(handles_[file], data(), bytes, offset, static_cast<off_t>(slot * stride() + at));
}

ssize_t CuFileSink::write(std::uint32_t file, std::size_t slot, std::uint64_t at, std::size_t bytes, off_t offset) {
  return cufile_->write(handles_[file], data(), bytes, offset, static_cast<off_t>(slot * stride() + at));
}

std::string CuFileSink::how() const {
  return cufile_->how() + (registered_ ? ", registered GPU memory" : ", GPU memory not registered");
}

}  // namespace lanewise::storage
