#include "loadtest/replay.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "host/failure.hpp"
#include "loadtest/clock.hpp"

namespace lanewise::loadtest {

namespace {

constexpr std::int64_t kLook =
    20'000'000;  // ns that the issuing thread sleeps at most, so as to see that the run was cancelled
constexpr int kTurnsPerLook = 100;      // of half a millisecond: the interpreter is not kept busy
constexpr std::int64_t kSpin = 20'000;  // ns before a query is due that the issuing thread spins

class Replay {
 public:
  Replay(SystemUnderTest& system, std::vector<std::int64_t> scheduled, std::span<const std::uint64_t> samples,
         const ReplayOptions& options)
      : system_(system), samples_(samples), options_(options) {
    const std::size_t count = scheduled.size();
    result_.scheduled = std::move(scheduled);
    if (samples.size() != count || !std::ranges::is_sorted(result_.scheduled)) {
      throw host::Failure("a schedule out of order", "give ascending times, and a sample for each");
    }
    result_.issued.resize(count, -1);
    result_.answered.resize(count, -1);
    result_.answers.resize(count);
    if (options.keep) result_.data.resize(count);
  }

  ReplayResult run(const std::function<void()>& look) {
    begin_ = now_ns();
    system_.start([this](std::span<const Answer> answers) { note(answers); });
    std::exception_ptr interrupt;
    {
      const std::jthread issuer([this] { issue(); });
      try {
        wait(look);
      } catch (...) {
        interrupt = std::current_exception();
      }
      cancelled_ = true;
    }
    try {
      system_.stop();
    } catch (const host::Failure& failure) {
      result_.failure = failure.what();
      result_.hint = failure.hint();
    }
    if (interrupt) std::rethrow_exception(interrupt);
    return std::move(result_);
  }

 private:
  void note(std::span<const Answer> answers) {
    const std::int64_t now = now_ns() - begin_;
    for (const Answer& answer : answers) {
      if (answer.id >= result_.answers.size()) continue;
      result_.answered[answer.id] = now;
      std::atomic_ref(result_.answers[answer.id]).fetch_add(1, std::memory_order_relaxed);
      if (options_.keep && answer.data != nullptr) {
        result_.data[answer.id].assign(reinterpret_cast<const char*>(answer.data), answer.bytes);
      }
    }
    noted_.fetch_add(answers.size(), std::memory_order_release);
  }

  void issue() {
    wake_promptly();
    std::vector<Query> due;
    for (std::size_t next = 0; next < samples_.size() && !cancelled_;) {
      while (begin_ + result_.scheduled[next] - now_ns() > kLook && !cancelled_) sleep_until(now_ns() + kLook, 0);
      sleep_until(begin_ + result_.scheduled[next], kSpin);
      const std::int64_t now = now_ns() - begin_;
      due.clear();
      do {
        result_.issued[next] = now;
        due.push_back({next, samples_[next]});
        ++next;
      } while (options_.coalesce && next < samples_.size() && result_.scheduled[next] <= now);
      system_.issue(due);
    }
    if (options_.flush) system_.flush();
    issued_at_ = now_ns();
  }

  void wait(const std::function<void()>& look) const {
    int turns = 0;
    while (noted_.load(std::memory_order_acquire) < samples_.size()) {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
      if (++turns % kTurnsPerLook == 0) look();
      if (issued_at_ != 0 && static_cast<double>(now_ns() - issued_at_) * 1e-9 > options_.limit) return;
    }
  }

  SystemUnderTest& system_;
  std::span<const std::uint64_t> samples_;
  ReplayOptions options_;
  ReplayResult result_;
  std::int64_t begin_ = 0;
  std::atomic<std::int64_t> issued_at_ = 0;
  std::atomic<std::size_t> noted_ = 0;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace

ReplayResult replay(SystemUnderTest& system, std::vector<std::int64_t> scheduled,
                    std::span<const std::uint64_t> samples, const ReplayOptions& options,
                    const std::function<void()>& look) {
  return Replay(system, std::move(scheduled), samples, options).run(look);
}

}  // namespace lanewise::loadtest
