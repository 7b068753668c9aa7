#include "loadtest/gpu_copier_and_engine.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <thread>

#include "host/failure.hpp"

namespace lanewise::loadtest {

namespace {

constexpr std::size_t kTries = 4;             // batches a stream at least; one before them warms up
constexpr double kKernelCosts = 1.1;          // it takes multiprocessors from the model, so it has to win clearly
constexpr std::int64_t kTrying = 30'000'000;  // ns that each method is tried for: in a few ms chance would choose

const cuda::Gpu& gpu_of(cuda::Engine& driver, int ordinal) {
  const std::scoped_lock turn(driver.turn());
  return driver.gpu(ordinal);
}

std::optional<GpuMethod> method_of(const std::string& name) {
  if (name == "auto") return std::nullopt;
  const auto* const found = std::ranges::find(kGpuMethods, name);
  if (found != kGpuMethods.end()) return static_cast<GpuMethod>(found - kGpuMethods.begin());
  throw host::Failure("no copy method is called '" + name + "'", "take auto, batch, kernel, staged or calls");
}

}  // namespace

Allocate pinned_by(const std::shared_ptr<cuda::Engine>& driver, int ordinal) {
  return [driver, ordinal](std::size_t bytes, int node) {
    const auto memory = std::make_shared<cuda::Pinned>(gpu_of(*driver, ordinal).context(), bytes, node);
    return Block{memory->data(), memory};
  };
}

Allocate pinned_by(const std::shared_ptr<cuda::Engine>& driver, int ordinal, Block memory) {
  using Keepers = std::pair<Block, std::shared_ptr<cuda::Pinned>>;  // released in reverse order
  return [driver, ordinal, memory = std::move(memory)](std::size_t bytes, int node) {
    const auto pinned = std::make_shared<cuda::Pinned>(gpu_of(*driver, ordinal).context(), memory.data, bytes, node);
    return Block{memory.data, std::make_shared<Keepers>(memory, pinned)};
  };
}

GpuCopier::GpuCopier(std::shared_ptr<cuda::Engine> driver, int ordinal, SampleLibrary& library, int node,
                     const std::string& method)
    : driver_(std::move(driver)),
      gpu_(gpu_of(*driver_, ordinal)),
      resident_(library.resident()),
      asked_(method_of(method)) {
  source_ = {.host = library.on(node), .bytes = library.bytes(), .stride = library.stride(), .node = node};
  const cuda::Current current(*gpu_.context());
  // The driver asks for a pointer that may be written through; nothing writes to the library.
  gpu_.check(gpu_.calls().cuMemHostGetDevicePointer(&source_.device, const_cast<std::byte*>(source_.host), 0),
             "cuMemHostGetDevicePointer");
}

GpuCopier::GpuCopier(std::shared_ptr<cuda::Engine> driver, int ordinal, SampleLibrary& library, bool flush)
    : driver_(std::move(driver)),
      gpu_(gpu_of(*driver_, ordinal)),
      resident_(library.resident()),
      asked_(GpuMethod::kKernel),
      flush_(flush) {
  source_ = {.device = reinterpret_cast<CUdeviceptr>(library.on(host::kAnyNode)),
             .bytes = library.bytes(),
             .stride = library.stride()};
}

GpuCopier::Streams GpuCopier::make_streams(GpuMethod method, std::size_t batch, std::size_t streams) const {
  Streams ready;
  for (std::size_t i = 0; i < streams; ++i) {
    ready.push_back(std::make_unique<GpuStream>(gpu_, source_, batch));
    ready.back()->prepare(method);
  }
  return ready;
}

void GpuCopier::prepare(std::size_t batch, std::size_t streams) {
  streams_.clear();  // first: both at once may not fit
  method_ = asked_ ? *asked_ : fastest(batch, streams);
  streams_ = make_streams(method_, batch, streams);
}

// A method that fails here (no such call, too little memory to pin) is left out while another works.
GpuMethod GpuCopier::fastest(std::size_t batch, std::size_t streams) {
  const std::scoped_lock turn(driver_->turn());
  const cuda::Current current(*gpu_.context());
  std::optional<GpuMethod> best;
  std::optional<host::Failure> failed;
  double least = 0;
  seconds_by_method_.clear();
  for (std::size_t i = 0; i < kGpuMethods.size(); ++i) {
    const auto method = static_cast<GpuMethod>(i);
    try {
      const double took = seconds(make_streams(method, batch, streams), method, batch);
      seconds_by_method_.emplace_back(kGpuMethods[i], took);
      const double counts = method == GpuMethod::kKernel ? kKernelCosts * took : took;
      if (!best || counts < least) {
        best = method;
        least = counts;
      }
    } catch (const host::Failure& failure) {
      failed = failure;
    }
  }
  if (!best) throw host::Failure(*failed);
  return *best;
}

// A batch's share of the time that all streams take at once, as under load: methods that are as fast alone share a link
// differently.
double GpuCopier::seconds(const Streams& streams, GpuMethod method, std::size_t batch) const {
  std::vector<std::exception_ptr> failed(streams.size());
  std::vector<std::size_t> copied(streams.size());
  for (std::size_t i = 0; i < streams.size(); ++i) streams[i]->copy_samples(method, scattered(i, batch));
  const std::int64_t start = now_ns();
  const auto work = [&](std::size_t of) {
    try {
      const cuda::Current current(*gpu_.context());
      while (copied[of] < kTries || now_ns() - start < kTrying) {
        streams[of]->copy_samples(method, scattered(of + streams.size() * ++copied[of], batch));
      }
    } catch (...) {
      failed[of] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(streams.size());
    for (std::size_t i = 0; i < streams.size(); ++i) threads.emplace_back(work, i);
  }
  const std::int64_t took = now_ns() - start;
  for (const std::exception_ptr& each : failed) {
    if (each) std::rethrow_exception(each);
  }
  const std::size_t batches = std::accumulate(copied.begin(), copied.end(), std::size_t{0});
  return static_cast<double>(took) * 1e-9 / static_cast<double>(batches);
}

// A batch's slots, others for each number, so that no cache has them.
std::vector<std::uint32_t> GpuCopier::scattered(std::size_t number, std::size_t batch) const {
  std::vector<std::uint32_t> slots(batch);
  for (std::size_t i = 0; i < batch; ++i) {
    slots[i] = static_cast<std::uint32_t>((number * batch + i) * 2654435761U % resident_);
  }
  return slots;
}

void GpuCopier::copy(std::size_t stream, std::span<const std::uint32_t> slots) {
  const cuda::Current current(*gpu_.context());
  if (flush_) {
    gpu_.check(gpu_.calls().cuFlushGPUDirectRDMAWrites(cuda::kFlushCurrentContext, cuda::kFlushToOwner),
               "cuFlushGPUDirectRDMAWrites");
  }
  streams_[stream]->copy_samples(method_, slots);
}

const std::byte* GpuCopier::read_back(std::size_t stream, std::size_t bytes) {
  return streams_[stream]->read_back(bytes);
}

SyntheticGpuEngine::SyntheticGpuEngine(std::shared_ptr<cuda::Engine> driver, int ordinal, ServiceTime service)
    : driver_(std::move(driver)), gpu_(gpu_of(*driver_, ordinal)), service_(service) {}

void SyntheticGpuEngine::prepare(std::size_t, std::size_t streams) {
  done_.clear();
  for (std::size_t i = 0; i < streams; ++i) {
    done_.push_back(cuda::make_event(gpu_.context(), cuda::kEventBlockingSync | cuda::kEventDisableTiming));
  }
  stream_.emplace(cuda::make_stream(gpu_.context()));
}

void SyntheticGpuEngine::infer(const Batch& batch, std::span<Answer>) {
  const std::int64_t service = service_.of(batch.queries.size());
  if (service == 0) return;
  const cuda::Current current(*gpu_.context());
  const cuda::Event& done = done_[batch.stream];
  gpu_.hold(stream_->get(), static_cast<unsigned long long>(service));
  gpu_.check(gpu_.calls().cuEventRecord(done.get(), stream_->get()), "cuEventRecord");
  gpu_.check(gpu_.calls().cuEventSynchronize(done.get()), "cuEventSynchronize");
}

}  // namespace lanewise::loadtest
