// The query dispatch library itself: a NetworkSystem as Frontend, a NodeSession with a ChecksumSystem as node.
// TRANSPORT: shm, tcp or tcp-zerocopy; with -thread, a thread of its own issues queries.
#include <atomic>

#include "dispatch/checksum_system.hpp"
#include "dispatch/network_system.hpp"
#include "dispatch/node.hpp"
#include "dispatch/shm_channel.hpp"
#include "dispatch/tcp_channel.hpp"
#include "loadtest/cpu_copier_and_engine.hpp"
#include "peer.hpp"

namespace {

using namespace lanewise;
using namespace lanewise::dispatch;

constexpr std::size_t kAnswer = 8;  // bytes of a slot for answers

// Made before the fork, so both processes have it.
struct Fabric {
  explicit Fabric(const peer::Options& options)
      : layout{static_cast<std::uint32_t>(options.slots), options.bytes, kAnswer},
        slots(std::make_shared<SharedMemory>(options.slots * options.stride(), host::kAnyNode)),
        stride(options.stride()) {
    if (options.transport == "shm") memory = std::make_shared<SharedMemory>(layout.total(), host::kAnyNode);
    if (options.transport != "shm") sockets = peer::tcp_pair();
    zero_copy = options.transport == "tcp-zerocopy";
  }
  Slots answers(std::byte* data) const {
    return {.data = data, .count = layout.slots, .bytes = kAnswer, .stride = kAnswer, .has_text = true};
  }
  Slots samples(std::byte* data) const {
    return {.data = data, .count = layout.slots, .bytes = layout.sample_bytes, .stride = stride};
  }

  std::unique_ptr<Channel> channel(ShmChannel::Side side) const {
    if (memory != nullptr) return std::make_unique<ShmChannel>(side, layout, memory, slots, 0, stride);
    if (side == ShmChannel::Side::kNode) {
      return std::make_unique<TcpChannel>(sockets[1], samples(slots->data()), answers(nullptr), slots, false);
    }
    const auto room = std::make_shared<std::vector<std::byte>>(layout.slots * kAnswer + kTextBytes);
    return std::make_unique<TcpChannel>(sockets[0], answers(room->data()), samples(nullptr), room, zero_copy);
  }

  ShmLayout layout;
  SharedMemoryPointer slots, memory;
  std::size_t stride;
  std::array<int, 2> sockets{-1, -1};
  bool zero_copy = false;
};

void node(const peer::Options& options, const Fabric& fabric) {
  if (fabric.memory == nullptr) close(fabric.sockets[0]);
  ChecksumSystem system(fabric.slots, options.bytes, fabric.stride);
  NodeSession session(system, "node");
  session.add(fabric.channel(ShmChannel::Side::kNode), kAnswer, {});
  while (session.reason().empty()) sleep(1);
}

// Keeps the window full: the library's own limit if that is the window, else a query for each answer, issued within the
// call that brings it, as an event loop does; or (`thread`) by a thread that waits for the answer, as LoadGen does.
class Frontend {
 public:
  Frontend(const peer::Options& options, bool thread, const std::vector<std::uint32_t>& sums, NetworkSystem& system,
           peer::Meter& meter)
      : window_(options.window),
        style_(options.window == options.slots ? Style::kSlots
               : thread                        ? Style::kThread
                                               : Style::kCall),
        sums_(sums),
        system_(system),
        meter_(meter) {}
  void run() {
    system_.start([this](std::span<const loadtest::Answer> answers) { take(answers); });
    issue(style_ == Style::kSlots ? 0 : window_);
    while (!meter_.over()) {
      if (style_ == Style::kCall) usleep(1000);
      if (style_ == Style::kSlots) issue(kTogether);
      if (style_ != Style::kThread) continue;
      const std::uint64_t done = answered_.load(std::memory_order_acquire);
      if (const std::size_t count = window_ - (issued_ - done); count > 0) {
        issue(count);
      } else {
        answered_.wait(done, std::memory_order_acquire);
      }
    }
    over_.store(true);
    while (answered_.load() < issued_.load()) usleep(1000);
    system_.stop();
  }

 private:
  enum class Style { kSlots, kCall, kThread };
  static constexpr std::size_t kTogether = 64;

  void take(std::span<const loadtest::Answer> answers) {
    for (const loadtest::Answer& answer : answers) {
      std::uint32_t sum = 0;
      std::memcpy(&sum, answer.data, std::min(answer.bytes, sizeof sum));
      meter_.answer(answer.id, answer.bytes == sizeof sum && sum == sums_[answer.id % sums_.size()]);
    }
    if (style_ == Style::kCall && !over_.load(std::memory_order_relaxed)) issue(answers.size());
    answered_.fetch_add(answers.size(), std::memory_order_release);
    if (style_ == Style::kThread) answered_.notify_one();
  }
  void issue(std::size_t count) {
    queries_.clear();
    std::uint64_t next = issued_.load(std::memory_order_relaxed);
    for (const std::int64_t now = peer::now_ns(); queries_.size() < count; ++next) {
      meter_.issue(next, now);
      queries_.push_back({next, next % sums_.size()});
    }
    issued_.store(next, std::memory_order_relaxed);  // before its answer can come
    system_.issue(queries_);
  }

  std::size_t window_;
  Style style_;
  const std::vector<std::uint32_t>& sums_;
  NetworkSystem& system_;
  peer::Meter& meter_;
  std::vector<loadtest::Query> queries_;
  std::atomic<std::uint64_t> issued_ = 0, answered_ = 0;
  std::atomic<bool> over_ = false;
};

}  // namespace

int main(int count, char** words) {
  peer::Options options = peer::options(count, words);
  const std::size_t dash = options.transport.find("-thread");
  const bool thread = dash != std::string::npos;
  options.transport = options.transport.substr(0, dash);
  const Fabric fabric(options);
  const pid_t child = peer::start_node(options, [&] { node(options, fabric); });
  peer::pin(options, 0);
  if (fabric.memory == nullptr) close(fabric.sockets[1]);
  bool right = false;
  {
    NetworkSystem system(loadtest::SampleLibrary(options.samples, options.samples, options.bytes,
                                                 loadtest::host_memory(), loadtest::fill_synthetic),
                         0);
    std::vector<std::uint64_t> all;
    for (std::size_t i = 0; i < options.samples; ++i) all.push_back(i);
    system.load(all);
    std::vector<std::uint32_t> sums;
    const std::size_t stride = options.stride();
    for (const std::uint64_t i : all) {
      sums.push_back(loadtest::crc32(system.memory().data() + i * stride, options.bytes));
    }
    peer::Meter meter(options.seconds);
    system.add(0, fabric.channel(ShmChannel::Side::kFrontend), host::kAnyNode, {});
    Frontend(options, thread, sums, system, meter).run();
    right = meter.finish(child);
  }
  return right ? 0 : 1;
}
