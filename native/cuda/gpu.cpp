#include "cuda/gpu.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "host/failure.hpp"

namespace lanewise::cuda {

extern const char* const kKernelsPtx;

namespace {

constexpr unsigned kThreads = 512;        // a block of the kernels that work on whole buffers
constexpr unsigned kGatherThreads = 256;  // a block of the gather, each thread with 4 vectors
constexpr std::size_t kVector = 16;

unsigned attribute(const Context& context, int which) {
  int value = 0;
  context.check(context.calls().cuDeviceGetAttribute(&value, which, context.device()), "cuDeviceGetAttribute");
  return static_cast<unsigned>(value);
}

// The kernels compiled for this GPU by the driver; what its compiler says goes into the failure.
Module load(const std::shared_ptr<const Context>& context) {
  const Current current(*context);
  std::array<char, 4096> log{};
  std::array<int, 2> options{kJitErrorLog, kJitErrorLogBytes};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};  // NOLINT: the size goes in as a value
  CUmodule handle = nullptr;
  const CUresult result =
      context->calls().cuModuleLoadDataEx(&handle, kKernelsPtx, options.size(), options.data(), values.data());
  const std::string said = log.data();
  context->driver().check(result, "cuModuleLoadDataEx",
                          context->name() + (said.empty() ? "" : ": " + said.substr(0, said.find('\n'))));
  return {context, handle};
}

}  // namespace

Gpu::Gpu(std::shared_ptr<const Driver> driver, int ordinal)
    : context_(std::make_shared<Context>(std::move(driver), ordinal)),
      multiprocessors_(attribute(*context_, kMultiprocessorCount)),
      module_(load(context_)),
      spin_(function("lanewise_spin")),
      copy_(function("lanewise_copy")),
      copy_both_(function("lanewise_copy_both")),
      gather_(function("lanewise_gather")),
      fill_(function("lanewise_fill")),
      compare_(function("lanewise_compare")),
      chase_(function("lanewise_chase")),
      hold_(function("lanewise_hold")),
      copy_pieces_(function("lanewise_copy_pieces")),
      stream_(make_stream(context_)) {}

// Asking for an attribute makes the driver load the function now, also where modules are loaded lazily (see Driver).
CUfunction Gpu::function(const char* name) const {
  const Current current(*context_);
  CUfunction kernel = nullptr;
  check(calls().cuModuleGetFunction(&kernel, module_.get(), name), "cuModuleGetFunction");
  int registers = 0;
  check(calls().cuFuncGetAttribute(&registers, kNumberOfRegisters, kernel), "cuFuncGetAttribute");
  return kernel;
}

template <class... Values>
void Gpu::launch(const char* name, CUfunction kernel, Grid grid, CUstream stream, Values... values) const {
  std::array<void*, sizeof...(Values)> parameters{&values...};
  const CUresult result =
      calls().cuLaunchKernel(kernel, grid.x, grid.y, 1, grid.threads, 1, 1, 0, stream, parameters.data(), nullptr);
  context_->driver().check(result, "cuLaunchKernel", context_->name() + ", kernel " + name);
}

// One block a multiprocessor, or fewer where there is less to do.
Grid Gpu::grid_for(std::size_t items, int concurrent) const {
  const std::size_t most = std::max<std::size_t>(1, multiprocessors_ / static_cast<unsigned>(concurrent));
  const std::size_t blocks = std::clamp<std::size_t>((items + kThreads - 1) / kThreads, 1, most);
  return {.x = static_cast<unsigned>(blocks), .threads = kThreads};
}

void Gpu::spin(CUstream stream, CUdeviceptr open, CUdeviceptr timed_out, unsigned long long most_ns) const {
  launch("spin", spin_, {}, stream, open, timed_out, most_ns);
}

void Gpu::hold(CUstream stream, unsigned long long ns) const { launch("hold", hold_, {}, stream, ns); }

void Gpu::copy(CUstream stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, int passes, int concurrent) const {
  launch("copy", copy_, grid_for(bytes / kVector, concurrent), stream, to, from, static_cast<unsigned long long>(bytes),
         static_cast<unsigned>(passes));
}

void Gpu::copy_both(CUstream stream, CUdeviceptr to, CUdeviceptr from, CUdeviceptr back_to, CUdeviceptr back_from,
                    std::size_t bytes, int passes, int concurrent) const {
  launch("copy both directions", copy_both_, grid_for(bytes / kVector, concurrent), stream, to, from, back_to,
         back_from, static_cast<unsigned long long>(bytes), static_cast<unsigned>(passes));
}

void Gpu::gather(CUstream stream, CUdeviceptr to, CUdeviceptr library, CUdeviceptr picks, std::size_t bytes,
                 unsigned batch) const {
  const std::size_t vectors = bytes / kVector;
  constexpr std::size_t kVectorsPerBlock = std::size_t{4} * kGatherThreads;
  const auto blocks = static_cast<unsigned>((vectors + kVectorsPerBlock - 1) / kVectorsPerBlock);
  launch("gather", gather_, {.x = blocks, .threads = kGatherThreads, .y = batch}, stream, to, library, picks,
         static_cast<unsigned long long>(vectors));
}

void Gpu::copy_pieces(CUstream stream, PlacedPieces to, PlacedPieces from, std::size_t count, std::size_t bytes,
                      int concurrent) const {
  constexpr unsigned kBlocksAMultiprocessor = 2;
  const std::size_t vectors = bytes / kVector;
  constexpr std::size_t kVectorsPerBlock = std::size_t{4} * kGatherThreads;
  const std::size_t parts = count * ((vectors + kVectorsPerBlock - 1) / kVectorsPerBlock);
  const std::size_t most = kBlocksAMultiprocessor * multiprocessors_ / static_cast<unsigned>(concurrent);
  const auto blocks = static_cast<unsigned>(std::clamp<std::size_t>(parts, 1, std::max<std::size_t>(1, most)));
  launch("copy pieces", copy_pieces_, {.x = blocks, .threads = kGatherThreads}, stream, to.base, from.base, to.places,
         from.places, static_cast<unsigned long long>(count), static_cast<unsigned long long>(vectors));
}

void check_batches(const Driver& driver) {
  const Calls& calls = driver.calls();
  if (calls.cuMemcpyBatchAsync_v2 != nullptr || calls.cuMemcpyBatchAsync != nullptr) return;
  throw host::Failure("this driver has no cuMemcpyBatchAsync", "it came with CUDA 12.8 (driver 570)");
}

void Gpu::copy_batch(CUstream stream, std::span<CUdeviceptr> to, std::span<CUdeviceptr> from,
                     std::span<std::size_t> sizes) const {
  CUmemcpyAttributes attributes{.source_order = 1, .source_hint = {}, .destination_hint = {}, .flags = 0};
  std::size_t first = 0;
  std::size_t failed = 0;
  const CUresult result = calls().cuMemcpyBatchAsync_v2 != nullptr
                              ? calls().cuMemcpyBatchAsync_v2(to.data(), from.data(), sizes.data(), sizes.size(),
                                                              &attributes, &first, 1, stream)
                              : calls().cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), sizes.size(),
                                                           &attributes, &first, 1, &failed, stream);
  check(result, "cuMemcpyBatchAsync");
}

void Gpu::chase(CUstream stream, CUdeviceptr start, unsigned long long steps, unsigned chaser, CUdeviceptr end) const {
  launch("chase", chase_, {.x = multiprocessors_}, stream, start, steps, chaser, end);
}

void Gpu::fill(CUdeviceptr at, std::size_t bytes, unsigned long long seed) const {
  const Current current(*context_);
  launch("fill", fill_, grid_for(bytes / 8), stream_.get(), at, static_cast<unsigned long long>(bytes), seed);
  wait(stream_.get());
}

std::size_t Gpu::first_wrong(CUdeviceptr at, std::size_t bytes, unsigned long long seed) const {
  const Current current(*context_);
  const DeviceMemory first = allocate(context_, sizeof(unsigned long long));
  check(calls().cuMemsetD8Async(first.get(), 0xFF, sizeof(unsigned long long), stream_.get()), "cuMemsetD8Async");
  launch("compare", compare_, grid_for(bytes / 8), stream_.get(), at, static_cast<unsigned long long>(bytes), seed,
         first.get());
  unsigned long long offset = 0;
  check(calls().cuMemcpyDtoHAsync(&offset, first.get(), sizeof offset, stream_.get()), "cuMemcpyDtoHAsync");
  wait(stream_.get());
  return std::min<std::size_t>(offset, bytes);
}

}  // namespace lanewise::cuda
