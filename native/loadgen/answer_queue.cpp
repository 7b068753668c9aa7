#include "loadgen/answer_queue.hpp"

#include <thread>
#include <utility>

namespace lanewise::loadgen {

void AnswerQueue::put(std::span<const loadtest::Answer> answers) {
  const std::scoped_lock lock(mutex_);
  if (closed_) return;
  for (const loadtest::Answer& answer : answers) {
    const bool data = keep_data_ && answer.bytes != 0;
    waiting_.responses.emplace_back(answer.id, waiting_.bytes.size(), data ? answer.bytes : 0);
    if (data) waiting_.bytes.insert(waiting_.bytes.end(), answer.data, answer.data + answer.bytes);
  }
  if (idle_) changed_.notify_all();
}

void AnswerQueue::loop() {
  PendingAnswers batch;
  std::unique_lock lock(mutex_);
  for (;;) {
    gather(lock);
    if (closed_) return;
    batch.responses.clear();
    batch.bytes.clear();
    std::swap(batch, waiting_);
    reporting_ = true;
    lock.unlock();
    const auto start = reinterpret_cast<std::uintptr_t>(batch.bytes.data());
    for (auto& response : batch.responses) response.data += start;
    report_(batch.responses);
    lock.lock();
    reporting_ = false;
    if (closed_) changed_.notify_all();
  }
}

// Answers that come at a high rate are gathered for a moment, as network cards do with interrupts: a wake-up for each
// one costs the thread that brings it more than LoadGen takes for a query.
void AnswerQueue::gather(std::unique_lock<std::mutex>& lock) {
  constexpr auto kNap = std::chrono::microseconds(20);
  if (waiting_.responses.empty() && !closed_ && std::chrono::steady_clock::now() - last_ < kNap) {
    lock.unlock();
    std::this_thread::sleep_for(kNap);
    lock.lock();
  }
  idle_ = true;
  changed_.wait(lock, [this] { return closed_ || !waiting_.responses.empty(); });
  idle_ = false;
  last_ = std::chrono::steady_clock::now();
}

void AnswerQueue::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  waiting_ = {};
  changed_.notify_all();
  changed_.wait(lock, [this] { return !reporting_; });
}

}  // namespace lanewise::loadgen
