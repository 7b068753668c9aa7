// One run: a system under test as LoadGen sees it, and our own counters of the run.
#pragma once

#include <issue_query_controller.h>
#include <query_sample_library.h>
#include <system_under_test.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "loadgen/answer_queue.hpp"
#include "loadgen/settings.hpp"
#include "loadgen/threads.hpp"
#include "loadtest/latencies.hpp"
#include "loadtest/system.hpp"

namespace lanewise::loadgen {

// Why a run ended before its time; kFinished: it did not, LoadGen has all that its verdict takes.
enum class End { kNone, kHopeless, kStopped, kFailed, kFinished };

// Thrown through LoadGen when a run is given up, after LoadGen's logger was brought to rest.
struct GivenUp {};

// To LoadGen it is an mlperf::SystemUnderTest; it passes the queries on to a loadtest::SystemUnderTest.
class LoadGenRun : public mlperf::SystemUnderTest, public mlperf::QuerySampleLibrary {
 public:
  LoadGenRun(loadtest::SystemUnderTest& system, Settings settings);

  void issue_all();   // on the issuing thread: the whole of LoadGen's test
  void answer_all();  // on the answering thread, meanwhile
  void close() { answers_.close(); }

  void stop() noexcept { give_up(End::kStopped); }  // does nothing to a finished run
  // Ends the run if the system has failed: LoadGen would go on, and call empty answers VALID.
  void stop_if_failed() noexcept {
    if (system_.failed()) give_up(End::kFailed);
  }
  void stood_still(double seconds) noexcept { still_ += seconds; }  // by who waits for the run's end
  double still() const noexcept { return still_; }
  // The system's queries are dropped as they come; whether all have come.
  void cancel() {
    if (started_) system_.cancel();
  }
  bool drained() const noexcept { return received_.load() >= issued_.load(); }
  void finish();  // stops the system and lets its samples go, if LoadGen did not; throws what went wrong

  End end() const noexcept { return end_.load(); }
  std::uint64_t issued() const noexcept { return issued_.load(); }
  std::uint64_t answered() const noexcept { return reported_.load(); }
  std::uint64_t late() const noexcept { return late_.load(); }
  double seconds() const noexcept { return seconds_; }
  const loadtest::Latencies& lag() const noexcept { return lag_; }
  loadtest::Latencies latency() const;

  const std::string& Name() override { return name_; }
  size_t TotalSampleCount() override { return settings_.sample_count; }
  size_t PerformanceSampleCount() override { return settings_.performance_sample_count; }
  void LoadSamplesToRam(const std::vector<mlperf::QuerySampleIndex>& samples) override;
  void UnloadSamplesFromRam(const std::vector<mlperf::QuerySampleIndex>& samples) override;
  void IssueQuery(const std::vector<mlperf::QuerySample>& samples) override;
  void FlushQueries() override;

 private:
  using Clock = mlperf::logging::PerfClock;

  void receive(std::span<const loadtest::Answer> answers);
  void report(Responses& responses, loadtest::Latencies& latency);
  void await_answers();
  void give_up(End why) noexcept;
  [[noreturn]] void leave();
  void release();
  bool is_last_test() const noexcept;

  loadtest::SystemUnderTest& system_;
  const Settings settings_;
  const bool accuracy_;
  const std::string name_;
  std::int64_t bound_ns_ = std::numeric_limits<std::int64_t>::max();  // of Server; nothing is late elsewhere
  std::uint64_t most_late_ = 0;
  std::array<loadtest::Latencies, 2> latencies_;  // as the issuing and the answering thread measure them
  loadtest::Latencies lag_;
  AnswerQueue answers_;

  // Of the issuing thread alone.
  std::vector<std::uint64_t> loaded_;
  std::vector<loadtest::Query> queries_;
  Responses direct_;
  bool started_ = false;
  bool one_by_one_ = false;  // SingleStream and MultiStream: the next query comes after the answer
  bool in_test_ = false;
  std::uint64_t reported_before_ =
      0;  // before this test: an accuracy run and a search for the peak are made of several
  Clock::time_point first_issue_{};
  std::exception_ptr failure_;

  std::atomic<End> end_{End::kNone};
  // Each thread writes to cache lines of its own: a shared line would move between cores with every query.
  alignas(64) std::atomic<std::uint64_t> issued_{0};
  alignas(64) std::atomic<std::uint64_t> received_{0};  // answers of the system
  alignas(64) std::atomic<std::uint64_t> reported_{0};  // those that LoadGen knows
  std::atomic<std::uint64_t> late_{0};
  std::atomic<bool> awaited_{false};
  std::mutex mutex_;
  std::condition_variable all_reported_;
  double seconds_ = 0.0;
  double still_ = 0.0;
};

}  // namespace lanewise::loadgen
