// One device with its queue: workers form batches in turn, bring their samples there and answer them.
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
#include "loadtest/engine.hpp"
#include "loadtest/library.hpp"
#include "loadtest/record.hpp"

namespace lanewise::loadtest {

// What is asked of every queue.
struct Batching {
  std::size_t batch = 64;        // most queries of a batch
  std::int64_t timeout = 0;      // ns that the oldest query waits for others
  std::size_t streams = 2;       // batches in flight, a worker each
  std::size_t ring = 1U << 18;   // queries that may wait
  bool checksum = false;         // answer with the CRC-32 of what arrived on the device
};

// The first failure of a run; later ones follow from it.
class Fault {
 public:
  bool is_set() const noexcept { return set_.load(std::memory_order_relaxed); }
  void set(const std::string& cause, const std::string& hint) noexcept;
  // Nothing failed, but what still comes need not be served.
  void drop() noexcept;
  // Throws it, if there is one, and forgets it.
  void raise();
  void clear() noexcept;

 private:
  std::atomic<bool> set_ = false;
  std::mutex turn_;
  std::optional<host::Failure> first_;
};

// What all queues of a system share.
struct Shared {
  explicit Shared(Library library_, std::size_t traced, std::size_t batch)
      : library(std::move(library_)), trace(traced, batch) {}
  Library library;
  Fault fault;
  Trace trace;
  Answers answers;
};

class DeviceQueue {
 public:
  // Both prepared.
  DeviceQueue(std::size_t number, const Batching& options, Shared& shared, std::unique_ptr<Mover> mover,
       std::unique_ptr<Engine> engine);
  ~DeviceQueue();

  void start();
  void stop();  // answers what waits, then ends the workers

  std::size_t push(std::span<const Query> queries, std::int64_t at) noexcept { return ring_.push(queries, at); }
  void flush() noexcept;
  // Batches hold so many queries at most from the next start on; no more than was prepared for.
  void take_at_most(std::size_t batch) noexcept { most_ = std::clamp<std::size_t>(batch, 1, options_.batch); }
  // Queries not answered yet.
  std::uint64_t outstanding() const noexcept { return ring_.tail() - answered_.load(std::memory_order_relaxed); }

  void add_to(Tally& tally);
  const Mover& mover() const { return *mover_; }

 private:
  struct Worker {
    Worker(std::size_t stream_, const Batching& options);
    std::size_t stream;
    std::vector<Arrived> queries;
    std::vector<std::uint32_t> slots;
    std::vector<Answer> answers;
    std::vector<std::uint32_t> sums;
    Record record;
    std::thread thread;
  };

  void run(Worker& worker);
  std::size_t take(Worker& worker);
  void serve(Worker& worker, std::size_t count);
  void answer(Worker& worker, std::size_t count, Stamps& stamps);
  void answer_with_sums(Worker& worker, std::size_t count);

  std::size_t number_;
  Batching options_;
  std::size_t most_;
  Shared& shared_;
  std::unique_ptr<Mover> mover_;
  std::unique_ptr<Engine> engine_;
  QueryRing ring_;
  std::mutex taking_;  // one worker forms a batch; the others wait for their turn
  std::atomic<std::uint64_t> released_ = 0;  // queries before this position wait for no others
  std::atomic<bool> stopping_ = false;
  alignas(64) std::atomic<std::uint64_t> answered_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace lanewise::loadtest
