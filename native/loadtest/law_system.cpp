#include "loadtest/law_system.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "loadtest/clock.hpp"

namespace lanewise::loadtest {

LawSystem::LawSystem(double service, bool exponential, std::size_t servers, std::uint64_t seed)
    : service_(service), exponential_(exponential), servers_(servers), random_(seed) {}

LawSystem::~LawSystem() { LawSystem::stop(); }

std::string LawSystem::name() const {
  char text[64];
  static_cast<void>(std::snprintf(text, sizeof text, "M/%c/%zu, %.6g s", exponential_ ? 'M' : 'D', servers_, service_));
  return text;
}

void LawSystem::start(AnswerCallback answers) {
  answers_ = std::move(answers);
  free_ = {};
  for (std::size_t i = 0; i < servers_; ++i) free_.push(Clock::time_point::min());
  cancelled_ = ends_ = false;
  thread_ = std::thread([this] { work(); });
}

LawSystem::Clock::duration LawSystem::draw() {
  const double seconds = exponential_ ? std::exponential_distribution<>(1.0 / service_)(random_) : service_;
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void LawSystem::issue(std::span<const Query> queries) {
  const auto now = Clock::now();
  const std::scoped_lock lock(mutex_);
  const bool nothing = due_.empty();
  const auto before = nothing ? now : due_.top().time;
  for (const Query& query : queries) {
    const auto end = std::max(now, free_.top()) + draw();
    free_.pop();
    free_.push(end);
    due_.push({end, query.id});
  }
  if (nothing || due_.top().time < before) earlier_.notify_one();
}

void LawSystem::work() {
  wake_promptly();
  std::vector<Answer> ready;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (due_.empty()) {
      if (ends_) return;
      earlier_.wait(lock);
      continue;
    }
    const auto now = Clock::now();
    ready.clear();
    while (!due_.empty() && (cancelled_ || due_.top().time <= now)) {
      ready.push_back({due_.top().id});
      due_.pop();
    }
    if (ready.empty()) {
      earlier_.wait_until(lock, Clock::time_point(due_.top().time));
      continue;
    }
    lock.unlock();
    answers_(ready);
    lock.lock();
  }
}

void LawSystem::cancel() {
  const std::scoped_lock lock(mutex_);
  cancelled_ = true;
  earlier_.notify_one();
}

void LawSystem::stop() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    earlier_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  answers_ = nullptr;
}

}  // namespace lanewise::loadtest
