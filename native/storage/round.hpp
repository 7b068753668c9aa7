// What the threads of one round share: which I/O comes next, what is done, who has failed, whether to stop.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "host/failure.hpp"
#include "storage/job.hpp"

namespace lanewise::storage {

using Clock = std::chrono::steady_clock;

class Round {
 public:
  Round(const Job& job, const Task& task, unsigned workers);

  const Task& task() const { return task_; }
  void begin();  // the clock runs from here on
  void stop() { stopped_.store(true, std::memory_order_relaxed); }

  // The position of the next I/O in that volume; nothing where none is left, time is up or someone stopped.
  std::optional<std::uint64_t> next(std::size_t volume);
  // An I/O is done, its data where it should be.
  void done(unsigned worker, std::size_t volume, const std::vector<Piece>& pieces, Clock::time_point started);
  void fail(const host::Failure& failure);

  double seconds() const;
  std::vector<std::uint64_t> bytes() const;  // of each file so far
  Outcome outcome();                         // after all threads have ended; throws what one of them failed with

 private:
  struct Cursor {
    std::atomic<std::uint64_t> next{0};
    std::atomic<std::uint64_t> left{0};
  };
  struct alignas(64) Tally {
    std::unique_ptr<std::atomic<std::uint64_t>[]> bytes;  // of each file
    std::vector<float> times;
    Clock::time_point last{};
  };

  void close_window(Clock::time_point now);

  const Job& job_;
  const Task task_;
  const std::uint64_t wanted_;  // I/Os of each volume
  Shuffle shuffle_;
  std::vector<Cursor> cursors_;
  std::vector<Tally> tallies_;
  Clock::time_point begun_{};
  Clock::time_point deadline_ = Clock::time_point::max();
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::optional<host::Failure> failure_;
  std::optional<Clock::time_point> window_;
  std::vector<std::uint64_t> in_window_;
};

}  // namespace lanewise::storage
