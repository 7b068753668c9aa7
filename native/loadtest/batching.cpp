#include "loadtest/batching.hpp"

#include <algorithm>
#include <utility>

namespace lanewise::loadtest {

namespace {

constexpr std::int64_t kStall = 20'000;  // ns between two looks for room

const Batching& checked(const Batching& options) {
  const auto least = [](std::size_t value, std::size_t most, const char* what) {
    if (value >= 1 && value <= most) return;
    throw host::Failure(std::string(what) + " " + std::to_string(value), "take 1 to " + std::to_string(most));
  };
  least(options.batch, 65535, "batches of");  // blocks of the gather kernel's grid along y
  least(options.streams, 64, "batches in flight:");
  least(options.ring, std::size_t{1} << 28, "queries that may wait:");
  if (options.timeout < 0) throw host::Failure("a time-out below zero", "0 takes what is there");
  return options;
}

}  // namespace

BatchingSystem::BatchingSystem(std::string name, const Batching& options, Balance balance, std::shared_ptr<Shared> shared,
                               const std::vector<MakeParts>& queues)
    : name_(std::move(name)), options_(checked(options)), balance_(balance), shared_(std::move(shared)) {
  if (queues.empty()) throw host::Failure("a system without a device", "name one at least");
  for (const MakeParts& make : queues) {
    Parts parts = make(shared_->library);
    parts.mover->prepare(options_.batch, options_.streams);
    parts.engine->prepare(options_.batch, options_.streams);
    queues_.push_back(
        std::make_unique<DeviceQueue>(queues_.size(), options_, *shared_, std::move(parts.mover), std::move(parts.engine)));
  }
}

void BatchingSystem::start(Answers answers) {
  if (running_.exchange(true)) throw host::Failure("the system runs already", "stop it first");
  shared_->answers = std::move(answers);
  shared_->fault.clear();
  shared_->trace.clear();
  stalled_ = 0;
  for (const auto& queue : queues_) queue->start();
}

DeviceQueue& BatchingSystem::pick() noexcept {
  if (queues_.size() == 1) return *queues_.front();
  const std::size_t first = next_.fetch_add(1, std::memory_order_relaxed) % queues_.size();
  if (balance_ == Balance::kRoundRobin) return *queues_[first];
  // Equal ones in turn: an idle system uses all its devices.
  DeviceQueue* best = queues_[first].get();
  std::uint64_t least = best->outstanding();
  for (std::size_t i = 1; i < queues_.size() && least > 0; ++i) {
    DeviceQueue* const queue = queues_[(first + i) % queues_.size()].get();
    if (const std::uint64_t count = queue->outstanding(); count < least) {
      best = queue;
      least = count;
    }
  }
  return *best;
}

void BatchingSystem::issue(std::span<const Query> queries) {
  const std::int64_t now = now_ns();
  // What comes together goes in whole batches where there is more than a batch for each queue.
  const std::size_t queues = queues_.size();
  const std::size_t portion =
      queues == 1 ? queries.size() : std::clamp<std::size_t>(queries.size() / queues, 1, options_.batch);
  while (!queries.empty() && running_.load(std::memory_order_relaxed)) {
    const std::size_t taken = pick().push(queries.first(std::min(portion, queries.size())), now);
    queries = queries.subspan(taken);
    if (taken > 0) continue;
    const std::int64_t since = now_ns();
    sleep_until(since + kStall, 0);
    stalled_.fetch_add(now_ns() - since, std::memory_order_relaxed);
  }
}

void BatchingSystem::flush() {
  for (const auto& queue : queues_) queue->flush();
}

void BatchingSystem::cancel() {
  shared_->fault.drop();
  flush();
}

void BatchingSystem::take_at_most(std::size_t batch) {
  if (running_) throw host::Failure("the system runs", "stop it first");
  for (const auto& queue : queues_) queue->take_at_most(batch);
}

void BatchingSystem::end() noexcept {
  running_ = false;
  for (const auto& queue : queues_) queue->stop();
}

void BatchingSystem::stop() {
  end();
  shared_->answers = nullptr;
  shared_->fault.raise();
}

Tally BatchingSystem::tally() {
  Tally tally(options_.batch);
  for (const auto& queue : queues_) queue->add_to(tally);
  return tally;
}

}  // namespace lanewise::loadtest
