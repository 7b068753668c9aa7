// What the programs of benchmarks/dispatch_peers.py share: a Frontend and a node, two processes of one program. The Frontend
// keeps `window` queries outstanding, sample after sample of a library; the node has a slot for each of `slots` queries
// and answers each with the CRC-32 of what lies in its slot, which the Frontend compares with that of the sample.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "loadtest/clock.hpp"
#include "loadtest/crc32.hpp"
#include "loadtest/sample_library.hpp"

namespace peer {

using lanewise::loadtest::now_ns;

[[noreturn]] inline void fail(const char* what) {
  std::perror(what);
  std::_Exit(1);
}
inline void check(bool ok, const char* what) {
  if (!ok) fail(what);
}

// PROGRAM TRANSPORT BYTES WINDOW SLOTS SAMPLES SECONDS pin|free
struct Options {
  std::string transport;
  std::size_t bytes, window, slots, samples;
  double seconds;
  bool pin;

  std::size_t stride() const { return lanewise::loadtest::SampleLibrary::stride_of(bytes); }
};

inline Options options(int count, char** words) {
  if (count != 8) {
    std::fprintf(stderr, "usage: %s TRANSPORT BYTES WINDOW SLOTS SAMPLES SECONDS pin|free\n", words[0]);
    std::_Exit(2);
  }
  const auto number = [&](int i) { return static_cast<std::size_t>(std::atoll(words[i])); };
  return {words[1], number(2), number(3), number(4), number(5), std::atof(words[6]), std::string(words[7]) == "pin"};
}

// Both sides the same way: the Frontend's threads on CPU 0, the node's on CPU 1.
inline void pin(const Options& options, int cpu) {
  if (!options.pin) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  check(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

// The node is a process of its own, which ends with the Frontend.
template <class Node>
pid_t start_node(const Options& options, Node&& node) {
  const pid_t parent = getpid(), child = fork();
  check(child >= 0, "fork");
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) std::_Exit(0);
  pin(options, 1);
  node();
  std::_Exit(0);
}

// CPU time of this process, or of a node that has ended.
inline double cpu_seconds(int whose) {
  rusage usage{};
  getrusage(whose, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// A connection over loopback TCP: the Frontend's end and the node's.
inline std::array<int, 2> tcp_pair() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM, 0), near = socket(AF_INET, SOCK_STREAM, 0);
  check(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(listener, 1) == 0, "listen");
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  check(connect(near, reinterpret_cast<sockaddr*>(&address), size) == 0, "connect");
  const int far = accept(listener, nullptr, nullptr);
  check(far >= 0, "accept");
  close(listener);
  return {near, far};
}

// The samples, and the sum of each.
class Library {
 public:
  explicit Library(const Options& options) : bytes_(options.bytes), stride_(options.stride()) {
    data_.resize(options.samples * stride_);
    for (std::size_t i = 0; i < options.samples; ++i) {
      lanewise::loadtest::fill_synthetic(i, {data_.data() + i * stride_, bytes_});
      sums_.push_back(lanewise::loadtest::crc32(data_.data() + i * stride_, bytes_));
    }
  }
  std::size_t sample_of(std::uint64_t query) const { return query % sums_.size(); }
  const std::byte* at(std::uint64_t query) const { return data_.data() + sample_of(query) * stride_; }
  std::uint32_t sum(std::uint64_t query) const { return sums_[sample_of(query)]; }

 private:
  std::size_t bytes_, stride_;
  std::vector<std::byte> data_;
  std::vector<std::uint32_t> sums_;
};

// Counts what is answered after the warm-up, and notes when every query was issued. One thread issues, one answers.
class Meter {
 public:
  explicit Meter(double seconds)
      : issued_(kRing),
        cpu_(cpu_seconds(RUSAGE_SELF)),
        begin_(now_ns() + kWarmUp),
        end_(begin_ + static_cast<std::int64_t>(seconds * 1e9)) {
    times_.reserve(kKept);
  }
  void issue(std::uint64_t query) { issue(query, now_ns()); }
  void issue(std::uint64_t query, std::int64_t now) { issued_[query % kRing] = now; }
  void answer(std::uint64_t query, bool right) {
    const std::int64_t now = now_ns();
    ++all_;
    if (!right) ++wrong_;
    if (now < begin_ || now >= end_) return;
    ++answered_;
    if (times_.size() < kKept) times_.push_back(now - issued_[query % kRing]);
  }
  bool over() const { return now_ns() >= end_; }

  // Ends the node and prints one line of JSON; false: answers were wrong. CPU time of both from the first query on.
  bool finish(pid_t node) {
    const double at_frontend = cpu_seconds(RUSAGE_SELF) - cpu_;
    kill(node, SIGKILL);
    waitpid(node, nullptr, 0);
    const double per_query = 1e6 / static_cast<double>(std::max<std::uint64_t>(all_, 1));
    std::ranges::sort(times_);
    const auto at = [&](std::size_t percent) {
      return times_.empty() ? 0.0 : static_cast<double>(times_[(times_.size() - 1) * percent / 100]) * 1e-3;
    };
    const double seconds = static_cast<double>(end_ - begin_) * 1e-9;
    std::printf(
        "{\"qps\": %.1f, \"answered\": %llu, \"wrong\": %llu, \"p50_us\": %.2f, \"p99_us\": %.2f, "
        "\"max_us\": %.2f, \"frontend_cpu_us\": %.2f, \"node_cpu_us\": %.2f}\n",
        static_cast<double>(answered_) / seconds, static_cast<unsigned long long>(answered_),
        static_cast<unsigned long long>(wrong_), at(50), at(99), at(100), at_frontend * per_query,
        cpu_seconds(RUSAGE_CHILDREN) * per_query);
    std::fflush(stdout);
    return wrong_ == 0 && answered_ > 0;
  }

 private:
  static constexpr std::size_t kRing = 1 << 16, kKept = 1 << 20;
  static constexpr std::int64_t kWarmUp = 300'000'000;  // ns
  std::vector<std::int64_t> issued_, times_;
  double cpu_;
  std::int64_t begin_, end_;
  std::uint64_t all_ = 0, answered_ = 0, wrong_ = 0;
};

}  // namespace peer
