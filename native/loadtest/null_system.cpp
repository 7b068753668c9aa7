#include "loadtest/null_system.hpp"

#include <utility>

namespace lanewise::loadtest {

NullSystem::~NullSystem() { NullSystem::stop(); }

void NullSystem::start(AnswerCallback answers) {
  answers_ = std::move(answers);
  if (!by_thread_) return;
  ends_ = false;
  thread_ = std::thread([this] { work(); });
}

void NullSystem::issue(std::span<const Query> queries) {
  if (!by_thread_) {
    at_once_.clear();
    for (const Query& query : queries) at_once_.push_back({query.id});
    answers_(at_once_);
    return;
  }
  const std::scoped_lock lock(mutex_);
  for (const Query& query : queries) waiting_.push_back({query.id});
  if (std::exchange(idle_, false)) more_.notify_one();
}

void NullSystem::work() {
  std::vector<Answer> answers;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (waiting_.empty()) {
      if (ends_) return;
      idle_ = true;
      more_.wait(lock);
    }
    answers.clear();
    std::swap(answers, waiting_);
    lock.unlock();
    answers_(answers);
    lock.lock();
  }
}

void NullSystem::stop() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    more_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  answers_ = nullptr;
}

}  // namespace lanewise::loadtest
