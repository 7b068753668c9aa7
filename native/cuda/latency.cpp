#include "cuda/latency.hpp"

#include <algorithm>
#include <cstring>

#include "cuda/copy_stream.hpp"
#include "cuda/gate.hpp"
#include "host/failure.hpp"

namespace lanewise::cuda {

namespace {

constexpr std::size_t kNode = 8;     // bytes of a pointer
constexpr std::size_t kStride = 16;  // nodes from one to the next: 128 bytes, a cache line
constexpr std::size_t kSmallCopy = 16;
// nvbandwidth's steps, shared by all multiprocessors, each of which starts at the first node. Fewer steps are spread
// over as much memory, so that as many pages and lines are touched.
constexpr unsigned long long kReferenceSteps = 1'000'000;

double seconds_between(const Gpu& gpu, const Event& start, const Event& end) {
  float milliseconds = 0;
  gpu.check(gpu.calls().cuEventElapsedTime(&milliseconds, start.get(), end.get()), "cuEventElapsedTime");
  return static_cast<double>(milliseconds) / 1000;
}

// Memory whose every node points kStride nodes on, the last ones back to the first.
class Chain {
 public:
  Chain(Engine& engine, const Chase& options, std::size_t nodes)
      : end_(engine, options.holder, nodes * kNode, options.node, engine.gpu(options.reader)), nodes_(nodes) {
    std::vector<CUdeviceptr> next(nodes);
    for (std::size_t i = 0; i < nodes; ++i) next[i] = at(i + kStride);
    if (options.holder == kHost) {
      std::memcpy(end_.host(), next.data(), nodes * kNode);
      return;
    }
    const Gpu& holder = engine.gpu(options.holder);
    const Stream stream = make_stream(holder.context());
    const Current current(*holder.context());
    holder.check(holder.calls().cuMemcpyHtoDAsync(at(0), next.data(), nodes * kNode, stream.get()),
                 "cuMemcpyHtoDAsync");
    holder.wait(stream.get());
  }

  // The address of node `i`, counted round.
  CUdeviceptr at(std::size_t i) const { return end_.address() + i % nodes_ * kNode; }

 private:
  FlowEnd end_;
  std::size_t nodes_;
};

}  // namespace

double chase(Engine& engine, const Chase& options) {
  const std::scoped_lock turn(engine.turn());
  const Gpu& reader = engine.gpu(options.reader);
  const std::size_t nodes = options.bytes / (kNode * kStride) * kStride;
  if (nodes == 0 || options.steps < 1) {
    throw host::Failure("a pointer chase of " + std::to_string(options.steps) + " steps through " +
                            std::to_string(options.bytes) + " bytes",
                        "take at least one step and 128 bytes");
  }
  if (options.holder != kHost) engine.set_peers(options.reader, options.holder, true);
  const Chain chain(engine, options, nodes);
  const Stream stream = make_stream(reader.context());
  const Event start = make_event(reader.context());
  const Event end = make_event(reader.context());
  const auto last_node = engine.pool().device(reader.context(), sizeof(CUdeviceptr));
  const Current current(*reader.context());
  const auto walk = [&](unsigned long long from, unsigned long long steps, unsigned chaser) {
    reader.check(reader.calls().cuEventRecord(start.get(), stream.get()), "cuEventRecord");
    reader.chase(stream.get(), chain.at(from * kStride), steps, chaser, last_node->get());
    reader.check(reader.calls().cuEventRecord(end.get(), stream.get()), "cuEventRecord");
    reader.wait(stream.get());
    return seconds_between(reader, start, end);
  };

  const auto steps = static_cast<unsigned long long>(options.steps);
  const auto share = std::max<unsigned long long>(1, steps / reader.multiprocessors());
  const auto reach = std::max<unsigned long long>(1, kReferenceSteps / reader.multiprocessors());
  walk(0, reach, 0);                                            // warms up
  const double setup = std::min(walk(0, 0, 0), walk(0, 0, 0));  // a launch without a step
  double seconds = 0;
  unsigned long long from = 0;
  for (unsigned chaser = 0; chaser < reader.multiprocessors(); ++chaser) {
    from = chaser * share % reach;
    seconds += walk(from, share, chaser) - setup;
  }
  CUdeviceptr last = 0;
  reader.check(reader.calls().cuMemcpyDtoHAsync(&last, last_node->get(), sizeof last, stream.get()),
               "cuMemcpyDtoHAsync");
  reader.wait(stream.get());
  if (last != chain.at((from + share) * kStride)) {
    throw host::Failure("the pointer chase by GPU " + std::to_string(options.reader) + " went astray",
                        "wrong data comes from settings of the IOMMU or of ACS, or from a faulty link");
  }
  return seconds / static_cast<double>(share * reader.multiprocessors());
}

double launch(Engine& engine, const Launch& options) {
  const std::scoped_lock turn(engine.turn());
  if (options.src == kHost && options.dst == kHost) throw host::Failure("no GPU takes part", "name one at least");
  if (options.repeats < 1 || options.repeats > 2 * kMostHeld) {
    throw host::Failure(std::to_string(options.repeats) + " copies in a row", "1 to 512 can wait behind the hold");
  }
  const Gpu& gpu = engine.gpu(options.src == kHost ? options.dst : options.src);
  const FlowEnd from(engine, options.src, kSmallCopy, options.node, gpu);
  const FlowEnd to(engine, options.dst, kSmallCopy, options.node, gpu);
  if (options.src != kHost && options.dst != kHost) engine.set_peers(options.src, options.dst, options.p2p);
  const Stream stream = make_stream(gpu.context());
  const Event start = make_event(gpu.context());
  const Event end = make_event(gpu.context());
  Gate& gate = engine.gate(gpu);

  const auto copy = [&] {
    const Calls& calls = gpu.calls();
    if (options.src == kHost) {
      gpu.check(calls.cuMemcpyHtoDAsync(to.address(), from.host(), kSmallCopy, stream.get()), "cuMemcpyHtoDAsync");
    } else if (options.dst == kHost) {
      gpu.check(calls.cuMemcpyDtoHAsync(to.host(), from.address(), kSmallCopy, stream.get()), "cuMemcpyDtoHAsync");
    } else {
      gpu.check(
          calls.cuMemcpyPeerAsync(to.address(), to.context(), from.address(), from.context(), kSmallCopy, stream.get()),
          "cuMemcpyPeerAsync");
    }
  };
  const Current current(*gpu.context());
  copy();  // warms up: what the driver sets up for this path
  gpu.wait(stream.get());
  const auto row = [&](bool hold) {
    gate.close();
    const Settled settled(gate, {{&gpu, stream.get()}});
    if (hold) gate.hold(gpu, stream.get());
    gpu.check(gpu.calls().cuEventRecord(start.get(), stream.get()), "cuEventRecord");
    for (int i = 0; i < options.repeats; ++i) copy();
    gpu.check(gpu.calls().cuEventRecord(end.get(), stream.get()), "cuEventRecord");
    gate.open();
    gpu.wait(stream.get());
  };
  const bool staged = Flow{.src = options.src, .dst = options.dst, .p2p = options.p2p}.staged();
  row(!staged || engine.holds_staged());
  if (!gate.in_time() && staged && engine.holds_staged()) {
    engine.release_staged();
    row(false);
  }
  gate.check_in_time();
  return seconds_between(gpu, start, end) / options.repeats;
}

}  // namespace lanewise::cuda
