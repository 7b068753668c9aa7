// A system under test of one queue a device: queues, batches, copies, an engine, answers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "loadtest/device_queue.hpp"

namespace lanewise::loadtest {

enum class Balance { kLeastOutstanding, kRoundRobin };

// What a queue is made of, given the library that it reads.
struct Parts {
  std::unique_ptr<Mover> mover;
  std::unique_ptr<Engine> engine;
};
using MakeParts = std::function<Parts(Library&)>;

class BatchingSystem : public System {
 public:
  BatchingSystem(std::string name, const Batching& options, Balance balance, std::shared_ptr<Shared> shared,
                 const std::vector<MakeParts>& queues);
  ~BatchingSystem() override { end(); }

  std::string name() const override { return name_; }
  void load(std::span<const std::uint64_t> samples) override { shared_->library.load(samples); }
  void unload(std::span<const std::uint64_t> samples) override { shared_->library.unload(samples); }
  void start(Answers answers) override;
  // Waits, which is counted, where a ring is full: memory is bounded.
  void issue(std::span<const Query> queries) override;
  void flush() override;
  void cancel() override;
  void stop() override;

  // Between runs: the most queries of a batch, up to what was asked for at first.
  void take_at_most(std::size_t batch);

  // Ends the workers of a run that nobody stopped.
  void end() noexcept;

  // What the queues did since the last start.
  Tally tally();
  std::vector<TracedBatch> trace() const { return shared_->trace.batches(); }
  double stalled() const { return static_cast<double>(stalled_.load()) * 1e-9; }  // s that issue() waited for room
  const Batching& options() const { return options_; }
  const std::vector<std::unique_ptr<DeviceQueue>>& queues() const { return queues_; }

 private:
  DeviceQueue& pick() noexcept;

  std::string name_;
  Batching options_;
  Balance balance_;
  std::shared_ptr<Shared> shared_;
  std::vector<std::unique_ptr<DeviceQueue>> queues_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::int64_t> stalled_ = 0;
  std::atomic<bool> running_ = false;
};

}  // namespace lanewise::loadtest
