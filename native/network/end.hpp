// What both transports share: how an end is set up, its threads' stages, and what it has moved so far.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/failure.hpp"
#include "host/guarded.hpp"

namespace lanewise::network {

struct Setup {
  std::size_t bytes = 0;   // one message
  int node = -1;           // NUMA node of the buffers, -1 for any
  std::vector<int> cpus;   // where the threads stay, empty for anywhere
  std::uint64_t seed = 0;  // of the pattern
};

// Bytes of each connection at one moment of this machine's clock.
struct ByteCounters {
  double seconds = 0.0;
  std::vector<std::uint64_t> bytes;
};

inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline std::uint64_t now_nanoseconds() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// A count that one thread raises and another reads, on a cache line of its own.
struct alignas(64) Count {
  std::atomic<std::uint64_t> value{0};
};

// Threads exchange a pattern, wait for `go`, then run until `stop`; the first failure of any is kept for who asks.
class Stages {
 public:
  explicit Stages(std::size_t threads) : threads_(threads) {}

  // For the threads.
  void verified() { ++verified_; }
  bool wait_for_go() const {
    go_.wait(false);
    return !stopped();
  }
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }
  bool abandoned() const { return abandon_.load(std::memory_order_relaxed); }
  void ended() { ++ended_; }
  // Runs action() and keeps what it throws.
  template <typename Action>
  void guard(Action&& action) {
    host::guarded(std::forward<Action>(action), [this](const host::Failure& failure) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!failure_) failure_ = failure;
    });
  }

  // For who directs them.
  bool ready() const {
    check();
    return verified_ == threads_;
  }
  void go() {
    go_ = true;
    go_.notify_all();
  }
  void stop() {
    stop_ = true;
    go();
  }
  // Nobody waits for what is under way any more.
  void abandon() {
    abandon_ = true;
    stop();
  }
  bool done() const {
    check();
    return ended_ == threads_;
  }
  void check() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) throw host::Failure(*failure_);
  }

 private:
  std::size_t threads_;
  std::atomic<std::size_t> verified_{0}, ended_{0};
  std::atomic<bool> go_{false}, stop_{false}, abandon_{false};
  mutable std::mutex mutex_;
  std::optional<host::Failure> failure_;
};

}  // namespace lanewise::network
