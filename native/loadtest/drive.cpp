#include "loadtest/drive.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "host/failure.hpp"
#include "loadtest/clock.hpp"

namespace lanewise::loadtest {

namespace {

constexpr std::int64_t kLook = 20'000'000;  // ns that the issuing thread sleeps at most, so as to see that the run was cancelled
constexpr int kTurnsPerLook = 100;         // of half a millisecond: the interpreter is not kept busy
constexpr std::int64_t kSpin = 20'000;      // ns before a query is due that the issuing thread spins

class Run {
 public:
  Run(System& system, std::span<const double> seconds, std::span<const std::uint64_t> samples, const Drive& how)
      : system_(system), samples_(samples), how_(how) {
    const std::size_t count = seconds.size();
    for (const double at : seconds) driven_.scheduled.push_back(to_ns(at));
    if (samples.size() != count || !std::ranges::is_sorted(driven_.scheduled)) {
      throw host::Failure("a schedule out of order", "give ascending times, and a sample for each");
    }
    driven_.issued.resize(count, -1);
    driven_.answered.resize(count, -1);
    driven_.answers.resize(count);
    if (how.keep) driven_.data.resize(count);
  }

  Driven go(const std::function<void()>& look) {
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
      driven_.failure = failure.what();
      driven_.hint = failure.hint();
    }
    if (interrupt) std::rethrow_exception(interrupt);
    return std::move(driven_);
  }

 private:
  void note(std::span<const Answer> answers) {
    const std::int64_t now = now_ns() - begin_;
    for (const Answer& answer : answers) {
      if (answer.id >= driven_.answers.size()) continue;
      driven_.answered[answer.id] = now;
      std::atomic_ref(driven_.answers[answer.id]).fetch_add(1, std::memory_order_relaxed);
      if (how_.keep && answer.data != nullptr) {
        driven_.data[answer.id].assign(reinterpret_cast<const char*>(answer.data), answer.bytes);
      }
    }
    noted_.fetch_add(answers.size(), std::memory_order_release);
  }

  void issue() {
    wake_promptly();
    std::vector<Query> due;
    for (std::size_t next = 0; next < samples_.size() && !cancelled_;) {
      while (begin_ + driven_.scheduled[next] - now_ns() > kLook && !cancelled_) sleep_until(now_ns() + kLook, 0);
      sleep_until(begin_ + driven_.scheduled[next], kSpin);
      const std::int64_t now = now_ns() - begin_;
      due.clear();
      do {
        driven_.issued[next] = now;
        due.push_back({next, samples_[next]});
        ++next;
      } while (how_.coalesce && next < samples_.size() && driven_.scheduled[next] <= now);
      system_.issue(due);
    }
    if (how_.flush) system_.flush();
    issued_at_ = now_ns();
  }

  void wait(const std::function<void()>& look) const {
    int turns = 0;
    while (noted_.load(std::memory_order_acquire) < samples_.size()) {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
      if (++turns % kTurnsPerLook == 0) look();
      if (issued_at_ != 0 && static_cast<double>(now_ns() - issued_at_) * 1e-9 > how_.limit) return;
    }
  }

  System& system_;
  std::span<const std::uint64_t> samples_;
  Drive how_;
  Driven driven_;
  std::int64_t begin_ = 0;
  std::atomic<std::int64_t> issued_at_ = 0;
  std::atomic<std::size_t> noted_ = 0;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace

Driven drive(System& system, std::span<const double> seconds, std::span<const std::uint64_t> samples, const Drive& how,
             const std::function<void()>& look) {
  return Run(system, seconds, samples, how).go(look);
}

}  // namespace lanewise::loadtest
