#include "loadtest/gpu_device.hpp"

#include <algorithm>

#include "host/failure.hpp"

namespace lanewise::loadtest {

namespace {

constexpr int kTries = 3;  // of each method, the best counts; one more before them warms up

const cuda::Gpu& gpu_of(cuda::Engine& driver, int ordinal) {
  const std::scoped_lock turn(driver.turn());
  return driver.gpu(ordinal);
}

std::optional<GpuMethod> method_of(const std::string& name) {
  if (name == "auto") return std::nullopt;
  const auto* const found = std::ranges::find(kGpuMethods, name);
  if (found != kGpuMethods.end()) return static_cast<GpuMethod>(found - kGpuMethods.begin());
  throw host::Failure("no way to copy is called '" + name + "'", "take auto, batch, kernel, staged or calls");
}

}  // namespace

Allocate pinned_by(const std::shared_ptr<cuda::Engine>& driver, int ordinal) {
  return [driver, ordinal](std::size_t bytes, int node) {
    const auto memory = std::make_shared<cuda::Pinned>(gpu_of(*driver, ordinal).context(), bytes, node);
    return Block{memory->data(), memory};
  };
}

GpuMover::GpuMover(std::shared_ptr<cuda::Engine> driver, int ordinal, Library& library, int node,
                   const std::string& method)
    : driver_(std::move(driver)), gpu_(gpu_of(*driver_, ordinal)), room_(library.room()), asked_(method_of(method)) {
  source_ = {.host = library.on(node), .bytes = library.bytes(), .stride = library.stride(), .node = node};
  const cuda::Current current(*gpu_.context());
  // The driver asks for a pointer that may be written through; nothing writes to the library.
  gpu_.check(gpu_.calls().cuMemHostGetDevicePointer(&source_.device, const_cast<std::byte*>(source_.host), 0),
             "cuMemHostGetDevicePointer");
}

void GpuMover::prepare(std::size_t batch, std::size_t streams) {
  method_ = asked_ ? *asked_ : fastest(batch);
  streams_.clear();
  for (std::size_t i = 0; i < streams; ++i) {
    streams_.push_back(std::make_unique<GpuStream>(gpu_, source_, batch));
    streams_.back()->prepare(method_);
  }
}

GpuMethod GpuMover::fastest(std::size_t batch) {
  const std::scoped_lock turn(driver_->turn());
  const cuda::Current current(*gpu_.context());
  GpuStream stream(gpu_, source_, batch);
  std::optional<GpuMethod> best;
  double least = 0;
  tried_.clear();
  for (std::size_t i = 0; i < kGpuMethods.size(); ++i) {
    const auto method = static_cast<GpuMethod>(i);
    if (method == GpuMethod::kBatch && gpu_.calls().cuMemcpyBatchAsync_v2 == nullptr &&
        gpu_.calls().cuMemcpyBatchAsync == nullptr) {
      continue;
    }
    stream.prepare(method);
    const double took = seconds(stream, method, batch);
    tried_.emplace_back(kGpuMethods[i], took);
    if (!best || took < least) {
      best = method;
      least = took;
    }
  }
  return *best;
}

double GpuMover::seconds(GpuStream& stream, GpuMethod method, std::size_t batch) const {
  std::vector<std::uint32_t> slots(batch);
  std::int64_t best = kNever;
  for (int turn = 0; turn <= kTries; ++turn) {
    // Scattered, and other samples each time, so that no cache has them.
    for (std::size_t i = 0; i < batch; ++i) {
      slots[i] = static_cast<std::uint32_t>((static_cast<std::size_t>(turn) * batch + i) * 2654435761U % room_);
    }
    const std::int64_t start = now_ns();
    stream.move(method, slots);
    if (turn > 0) best = std::min(best, now_ns() - start);
  }
  return static_cast<double>(best) * 1e-9;
}

void GpuMover::move(std::size_t stream, std::span<const std::uint32_t> slots) {
  const cuda::Current current(*gpu_.context());
  streams_[stream]->move(method_, slots);
}

const std::byte* GpuMover::read_back(std::size_t stream, std::size_t bytes) {
  return streams_[stream]->read_back(bytes);
}

GpuHold::GpuHold(std::shared_ptr<cuda::Engine> driver, int ordinal, Service service)
    : driver_(std::move(driver)), gpu_(gpu_of(*driver_, ordinal)), service_(service) {}

void GpuHold::prepare(std::size_t, std::size_t streams) {
  done_.clear();
  for (std::size_t i = 0; i < streams; ++i) {
    done_.push_back(cuda::make_event(gpu_.context(), cuda::kEventBlockingSync | cuda::kEventDisableTiming));
  }
  stream_.emplace(cuda::make_stream(gpu_.context()));
}

void GpuHold::infer(const Batch& batch, std::span<Answer>) {
  const std::int64_t service = service_.of(batch.queries.size());
  if (service == 0) return;
  const cuda::Current current(*gpu_.context());
  const cuda::Event& done = done_[batch.stream];
  gpu_.hold(stream_->get(), static_cast<unsigned long long>(service));
  gpu_.check(gpu_.calls().cuEventRecord(done.get(), stream_->get()), "cuEventRecord");
  gpu_.check(gpu_.calls().cuEventSynchronize(done.get()), "cuEventSynchronize");
}

}  // namespace lanewise::loadtest
