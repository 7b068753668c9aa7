// Servers whose queueing is known in closed form: one queue, first come first served, service constant or exponential.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "loadtest/system.hpp"

namespace lanewise::loadtest {

class LawSystem : public SystemUnderTest {
 public:
  // `service` in s is the mean time of one query on one of `servers`.
  LawSystem(double service, bool exponential, std::size_t servers, std::uint64_t seed);
  ~LawSystem() override;
  std::string name() const override;
  void load(std::span<const std::uint64_t>) override {}
  void unload(std::span<const std::uint64_t>) override {}
  void start(AnswerCallback answers) override;
  void issue(std::span<const Query> queries) override;
  void flush() override {}
  void cancel() override;
  void stop() override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Due {
    Clock::time_point time;
    std::uint64_t id;
    bool operator>(const Due& other) const { return time > other.time; }
  };

  Clock::duration draw();
  void work();

  const double service_;
  const bool exponential_;
  const std::size_t servers_;
  std::mt19937_64 random_;
  AnswerCallback answers_;
  std::mutex mutex_;
  std::condition_variable earlier_;
  // Ends of service follow from the times of issue, so that a thread that wakes late delays its answers only.
  std::priority_queue<Clock::time_point, std::vector<Clock::time_point>, std::greater<>> free_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  bool cancelled_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace lanewise::loadtest
