#include "loadgen/answerer.hpp"

#include <thread>
#include <utility>

namespace lanewise::loadgen {

void Answerer::put(std::span<const loadtest::Answer> answers) {
  std::lock_guard held(mutex_);
  if (closed_) return;
  for (const loadtest::Answer& answer : answers) {
    const bool data = keep_data_ && answer.bytes != 0;
    waiting_.responses.emplace_back(answer.id, waiting_.bytes.size(), data ? answer.bytes : 0);
    if (data) waiting_.bytes.insert(waiting_.bytes.end(), answer.data, answer.data + answer.bytes);
  }
  if (idle_) changed_.notify_all();
}

void Answerer::loop() {
  Batch taken;
  std::unique_lock held(mutex_);
  for (;;) {
    wait(held);
    if (closed_) return;
    taken.responses.clear();
    taken.bytes.clear();
    std::swap(taken, waiting_);
    telling_ = true;
    held.unlock();
    const auto start = reinterpret_cast<std::uintptr_t>(taken.bytes.data());
    for (auto& response : taken.responses) response.data += start;
    tell_(taken.responses);
    held.lock();
    telling_ = false;
    if (closed_) changed_.notify_all();
  }
}

// Answers that come at a high rate are gathered for a moment, as network cards do with interrupts: a wake-up for each
// one costs the thread that brings it more than LoadGen takes for a query.
void Answerer::wait(std::unique_lock<std::mutex>& held) {
  constexpr auto kNap = std::chrono::microseconds(20);
  if (waiting_.responses.empty() && !closed_ && std::chrono::steady_clock::now() - last_ < kNap) {
    held.unlock();
    std::this_thread::sleep_for(kNap);
    held.lock();
  }
  idle_ = true;
  changed_.wait(held, [this] { return closed_ || !waiting_.responses.empty(); });
  idle_ = false;
  last_ = std::chrono::steady_clock::now();
}

void Answerer::close() {
  std::unique_lock held(mutex_);
  closed_ = true;
  waiting_ = {};
  changed_.notify_all();
  changed_.wait(held, [this] { return !telling_; });
}

}  // namespace lanewise::loadgen
