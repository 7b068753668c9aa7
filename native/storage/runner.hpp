// Buffers, threads and files of one job, kept over any number of rounds.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "storage/job.hpp"
#include "storage/round.hpp"
#include "storage/worker.hpp"

namespace lanewise::storage {

class Runner {
 public:
  explicit Runner(Job job);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void start(const Task& task);
  void stop();  // no further I/O begins
  bool running() const { return running_.load() > 0; }
  double seconds() const;
  std::vector<std::uint64_t> bytes() const;  // of each file in this round so far
  Outcome finish();                          // waits for the threads; throws what one of them failed with

  std::string how() const { return workers_.front()->how(); }
  // The number of pages of the destination memory on each NUMA node.
  std::map<int, std::size_t> nodes() const;

 private:
  void make_buffers();
  void make_sink();
  void start_threads();
  void live(Worker& worker);
  template <typename Action>
  void guarded(Action&& action);
  void wait();
  void end();

  const Job job_;
  std::vector<host::Memory> memory_;  // what is read into, and with a bounce what that is copied to
  std::vector<Slot> slots_;
  std::unique_ptr<Sink> sink_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Round> round_;
  // A ring belongs to the thread that made it, so threads live as long as the job.
  std::vector<std::thread> threads_;
  std::atomic<std::uint64_t> turn_{0};  // counts rounds; a change wakes the threads
  std::atomic<std::size_t> running_{0};
  bool ended_ = false;
  std::mutex mutex_;
  std::optional<host::Failure> failure_;  // of a thread that could not get ready
};

// The share of the first `bytes` of an open file that is in the page cache, 0 .. 1; negative where it is unknown.
double in_page_cache(int file, std::uint64_t bytes);

}  // namespace lanewise::storage
