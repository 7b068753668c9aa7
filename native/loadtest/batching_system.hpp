// A system under test of one queue a device: queues, batches, copies, an engine, answers.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "host/failure.hpp"
#include "loadtest/copier_and_engine.hpp"
#include "loadtest/sample_library.hpp"
#include "loadtest/statistics.hpp"

namespace lanewise::loadtest {

// Options of every queue. Ranges and defaults are those of Python's BatchingOptions (lanewise.options.loadtest).
struct QueueOptions {
  std::size_t batch;         // most queries of a batch
  std::int64_t timeout;      // ns that the oldest query waits for others; 2^62 at most
  std::size_t streams;       // batches in flight, a thread each
  std::size_t most_waiting;  // queries
  bool checksum;             // answer with the CRC-32 of what arrived on the device
};

// The first failure of a run; later ones follow from it.
class Fault {
 public:
  bool is_set() const noexcept { return set_.load(std::memory_order_relaxed); }
  void set(const std::string& cause, const std::string& hint) noexcept;
  // Nothing failed, but what still comes need not be served.
  void skip_rest() noexcept;
  // Throws it, if there is one, and forgets it.
  void raise();
  void clear() noexcept;

 private:
  std::atomic<bool> set_ = false;
  std::mutex mutex_;
  std::optional<host::Failure> first_;
};

// What all queues of a system use.
struct QueueContext {
  explicit QueueContext(SampleLibrary library_, std::size_t traced, std::size_t batch)
      : library(std::move(library_)), trace(traced, batch) {}
  SampleLibrary library;
  Fault fault;
  Trace trace;
  AnswerCallback answer;
};

// One device with its queue: its threads, one a stream (a batch in flight), form batches one after the other, copy
// their samples there and answer them.
class DeviceQueue {
 public:
  // Copier and engine are prepared.
  DeviceQueue(std::size_t number, const QueueOptions& options, QueueContext& context,
              std::unique_ptr<SampleCopier> copier, std::unique_ptr<InferenceEngine> engine);
  ~DeviceQueue();

  void start();
  void stop();  // answers what waits, then ends the threads

  std::size_t push(std::span<const Query> queries, std::int64_t arrived) noexcept {
    return ring_.push(queries, arrived);
  }
  void flush() noexcept;
  // Batches hold so many queries at most from the next start on; no more than was prepared for.
  void limit_batch(std::size_t batch) noexcept { batch_limit_ = std::clamp<std::size_t>(batch, 1, options_.batch); }
  // Queries not answered yet.
  std::uint64_t outstanding() const noexcept { return ring_.tail() - answered_.load(std::memory_order_relaxed); }

  void add_to(Statistics& statistics);
  const SampleCopier& copier() const { return *copier_; }

 private:
  // Serves one batch after the other: the stream of its number.
  struct BatchThread {
    BatchThread(std::size_t stream, const QueueOptions& options);
    std::size_t number;
    std::vector<QueuedQuery> queries;
    std::vector<std::uint32_t> slots;
    std::vector<Answer> answers;
    std::vector<std::uint32_t> checksums;
    GuardedStatistics statistics;
    std::thread thread;
  };

  void run(BatchThread& worker);
  std::size_t form_batch(BatchThread& worker);
  void serve(BatchThread& worker, std::size_t count);
  void copy_and_infer(BatchThread& worker, std::size_t count, BatchTimes& times);
  void answer_with_checksums(BatchThread& worker, std::size_t count);

  std::size_t number_;
  QueueOptions options_;
  std::size_t batch_limit_;
  QueueContext& context_;
  std::unique_ptr<SampleCopier> copier_;
  std::unique_ptr<InferenceEngine> engine_;
  QueryRing ring_;
  std::mutex forming_mutex_;                   // one thread forms a batch at a time
  std::atomic<std::uint64_t> flushed_to_ = 0;  // queries before this position wait for no others
  std::atomic<bool> stopping_ = false;
  alignas(64) std::atomic<std::uint64_t> answered_ = 0;
  std::vector<std::unique_ptr<BatchThread>> workers_;
};

enum class Balance { kLeastOutstanding, kRoundRobin };

// What a queue is made of, given the library that it reads.
struct QueueParts {
  std::unique_ptr<SampleCopier> copier;
  std::unique_ptr<InferenceEngine> engine;
};
using MakeQueueParts = std::function<QueueParts(SampleLibrary&)>;

class BatchingSystem : public SystemUnderTest {
 public:
  // A queue for each of `queues`, one at least.
  BatchingSystem(const QueueOptions& options, Balance balance, std::unique_ptr<QueueContext> context,
                 const std::vector<MakeQueueParts>& queues);
  ~BatchingSystem() override { end(); }

  std::string name() const override { return "lanewise"; }
  void load(std::span<const std::uint64_t> samples) override { context_->library.load(samples); }
  void unload(std::span<const std::uint64_t> samples) override { context_->library.unload(samples); }
  void start(AnswerCallback answer) override;
  // Waits, which is counted, where a queue is full: memory is bounded.
  void issue(std::span<const Query> queries) override;
  void flush() override;
  void cancel() override;
  bool failed() const noexcept override { return context_->fault.is_set(); }
  void stop() override;

  // Between runs: the most queries of a batch, up to the `batch` of the options.
  void limit_batch(std::size_t batch);

  // Ends the threads of a run that nobody stopped.
  void end() noexcept;

  // What the queues did since the last start.
  Statistics statistics();
  std::vector<TracedBatch> trace() const { return context_->trace.batches(); }
  double stalled() const { return static_cast<double>(stalled_.load()) * 1e-9; }  // s that issue() waited for room
  const QueueOptions& options() const { return options_; }
  const std::vector<std::unique_ptr<DeviceQueue>>& queues() const { return queues_; }

 private:
  DeviceQueue& pick() noexcept;

  QueueOptions options_;
  Balance balance_;
  std::unique_ptr<QueueContext> context_;
  std::vector<std::unique_ptr<DeviceQueue>> queues_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::int64_t> stalled_ = 0;
  std::atomic<bool> running_ = false;
};

}  // namespace lanewise::loadtest
