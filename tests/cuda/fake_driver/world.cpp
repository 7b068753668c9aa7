#include "world.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace fake {

namespace {

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

double number(const char* name, double otherwise) {
  const char* value = setting(name);
  return value == nullptr ? otherwise : std::strtod(value, nullptr);
}

}  // namespace

World& world() {
  static World* const all = new World;  // never destroyed: streams may outlive main
  return *all;
}

void configure() {
  World& w = world();
  Config config;
  config.gpus = static_cast<int>(number("FAKE_CUDA_GPUS", 2));
  config.version = static_cast<int>(number("FAKE_CUDA_VERSION", 13000));
  config.memory = static_cast<std::size_t>(number("FAKE_CUDA_MEMORY", 1 << 30));
  config.queue = static_cast<std::size_t>(number("FAKE_CUDA_QUEUE", 1024));
  if (const char* where = setting("FAKE_CUDA_CORRUPT")) config.corrupt = where;
  config.staged_waits = setting("FAKE_CUDA_STAGED_WAITS") != nullptr;
  config.spin_timeout = setting("FAKE_CUDA_SPIN_TIMEOUT") != nullptr;
  config.jit_error = setting("FAKE_CUDA_JIT_ERROR") != nullptr;
  config.hold = number("FAKE_CUDA_HOLD_MS", 0) / 1000;
  config.dma_buf = number("FAKE_CUDA_DMA_BUF", 1) != 0;
  config.rdma_ordering = static_cast<int>(number("FAKE_CUDA_RDMA_ORDERING", 100));
  config.rdma_flushes = static_cast<int>(number("FAKE_CUDA_RDMA_FLUSHES", 1));
  config.noise = number("FAKE_CUDA_NOISE", 0);
  if (const char* pairs = setting("FAKE_CUDA_NO_PEER")) {
    std::istringstream text(pairs);
    int a = 0, b = 0;
    char colon = 0;
    while (text >> a >> colon >> b) {
      config.no_peer.insert({a, b});
      config.no_peer.insert({b, a});
      text.ignore(1);
    }
  }
  if (const char* plan = setting("FAKE_CUDA_FAIL")) {
    const std::string text = plan;
    config.fail = text.substr(0, text.find(':'));
    config.fail_at = std::atoi(text.substr(text.find(':') + 1).c_str());
  }
  w.config = config;
  w.calls.clear();
  w.sticky = kSuccess;
  w.initialised = true;
}

bool fails(const char* call) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  return ++w.calls[call] == w.config.fail_at && w.config.fail == call;
}

std::vector<int>& current_stack() {
  thread_local std::vector<int> stack;
  return stack;
}

int current() {
  return current_stack().empty() ? -2 : current_stack().back();
}

CUcontext context_of(int device) {
  return reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 0xC0);
}

int device_of(CUcontext context) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(context) - 0xC0);
}

Stream::Stream(int of) : device(of), thread([this] { serve(); }) {}

Stream::~Stream() {
  {
    const std::scoped_lock hold(lock);
    stop = true;
  }
  changed.notify_all();
  thread.join();
}

void Stream::serve() {
  std::unique_lock hold(lock);
  while (true) {
    changed.wait(hold, [this] { return stop || !work.empty(); });
    if (work.empty()) return;
    busy = true;
    const auto item = std::move(work.front());
    hold.unlock();
    item();
    hold.lock();
    work.pop_front();  // only now: what runs takes its place in the queue
    busy = false;
    changed.notify_all();
  }
}

void Stream::push(std::function<void()> item) {
  std::unique_lock hold(lock);
  changed.wait(hold, [this] { return work.size() < world().config.queue; });
  work.push_back(std::move(item));
  changed.notify_all();
}

void Stream::drain() {
  std::unique_lock hold(lock);
  changed.wait(hold, [this] { return work.empty() && !busy; });
}

int holder(std::uint64_t at, std::size_t bytes) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  auto after = w.ranges.upper_bound(at);
  if (after == w.ranges.begin()) return -2;
  const auto& [start, range] = *--after;
  return at + bytes <= start + range.bytes ? range.device : -2;
}

bool reaches(int device, int of) {
  if (of == -2) return false;
  if (of == -1 || of == device) return true;
  World& w = world();
  const std::scoped_lock hold(w.lock);
  return w.peers.contains({device, of});
}

double copy_seconds(int by, int from, int to, std::size_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (from < 0) return 2e-6 + size / 5e9;
  if (to < 0) return 2e-6 + size / 4e9;
  if (from == to) return 1e-6 + size / 100e9;
  return reaches(by, by == from ? to : from) ? 2e-6 + size / 10e9 : 20e-6 + size / 2e9;
}

void pass(Stream& stream, double seconds) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  const double part = std::uniform_real_distribution<double>(-1, 1)(w.random) * w.config.noise;
  stream.now += seconds * (1 + part);
}

void move(Stream& stream, std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  const int source = holder(from, bytes), target = holder(to, bytes);
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  const std::string way = source == target ? "" : source < 0 ? "in" : target < 0 ? "out" : "peers";
  if (way == world().config.corrupt && bytes > 64) {
    reinterpret_cast<unsigned char*>(to)[bytes / 2] ^= 0x10;
  }
  pass(stream, copy_seconds(stream.device, source, target, bytes));
}

CUresult submit(CUstream handle, std::function<void(Stream&)> work) {
  World& w = world();
  Stream* stream = reinterpret_cast<Stream*>(handle);
  double queued = 0;  // what runs beside others starts no later because one of them has been waited for since
  {
    const std::scoped_lock hold(w.lock);
    if (w.sticky != kSuccess) return w.sticky;
    if (!w.streams.contains(stream)) return kInvalidHandle;
    queued = w.now;
  }
  if (current() != stream->device) return kInvalidContext;
  if (stream->capture) {
    stream->capture->push_back(std::move(work));
    return kSuccess;
  }
  stream->push([stream, queued, work = std::move(work)] {
    stream->now = std::max(stream->now, queued);
    work(*stream);
  });
  return kSuccess;
}

}  // namespace fake
