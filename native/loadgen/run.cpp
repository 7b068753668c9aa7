#include "loadgen/run.hpp"

#include <loadgen.h>
#include <logging.h>
#include <sys/prctl.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <utility>

#include "host/failure.hpp"

namespace lanewise::loadgen {
namespace {

using mlperf::loadgen::SampleMetadata;

constexpr std::size_t kIssuer = 0, kAnswerer = 1;
constexpr double kHighRate = 20e3;      // queries/s from which on wake-ups are shared
constexpr double kLinuxSlack = 50e-6;   // s, what Linux gives
constexpr double kShareOfBound = 1e-3;  // of the bound: nobody sees so much

// How late (ns) the issuing thread may wake. LoadGen sleeps before every query: at high rates several share a timer and
// a wake-up, which else are much of what a query costs; as late as nobody sees.
unsigned long slack(const mlperf::TestSettings& test) {
  if (test.scenario != mlperf::TestScenario::Server || test.server_target_qps < kHighRate) return 1;
  const double bound = static_cast<double>(test.server_target_latency_ns) * 1e-9;
  return static_cast<unsigned long>(std::max(1.0, std::min(kLinuxSlack, kShareOfBound * bound) * 1e9));
}

template <typename Duration>
double in_seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

// An error in the detail log, as LoadGen writes its own.
void log_error(const std::string& text) {
  mlperf::LogDetail([text](mlperf::AsyncDetail& detail) { detail.LogError("error_runtime", text, "lanewise", 0); });
}

// LoadGen goes on with half of its threads where it cannot write.
void check_folder(const std::string& folder) {
  std::ofstream log(folder + "/mlperf_log_detail.txt");
  if (!log.good()) throw host::Failure("LoadGen cannot write its logs to " + folder, "name a folder that exists");
}

// Waits until LoadGen's logger has read what this thread has logged. LoadGen 6.0.17 logs the loaded samples by
// reference to a list that goes right after they are unloaded, and after a short run its logger may not have read it by
// then.
void await_logger() {
  std::promise<void> read;
  mlperf::logging::Log([&read](mlperf::logging::AsyncLog&) { read.set_value(); });
  read.get_future().wait();
}

const char* explanation(End end) {
  switch (end) {
    case End::kHopeless:
      return "Lanewise ended the run early: more queries are late than a valid run can have";
    case End::kStopped:
      return "Lanewise ended the run early: interrupted";
    case End::kFailed:
      return "Lanewise ended the run early: the system under test failed";
    default:
      return "";
  }
}

}  // namespace

LoadGenRun::LoadGenRun(loadtest::SystemUnderTest& system, Settings settings)
    : system_(system),
      settings_(std::move(settings)),
      accuracy_(settings_.mode == mlperf::TestMode::AccuracyOnly),
      name_(system.name()),
      answers_([this](Responses& responses) { report(responses, latencies_[kAnswerer]); }, accuracy_) {}

void LoadGenRun::issue_all() {
  try {
    check_folder(settings_.folder);
    mlperf::TestSettings test = test_settings(settings_);
    if (test.scenario == mlperf::TestScenario::Server)
      bound_ns_ = static_cast<std::int64_t>(test.server_target_latency_ns);
    most_late_ = settings_.end_hopeless ? loadgen::most_late(test) : ~std::uint64_t{0};
    one_by_one_ =
        test.scenario == mlperf::TestScenario::SingleStream || test.scenario == mlperf::TestScenario::MultiStream;
    prctl(PR_SET_TIMERSLACK, slack(test));
    mlperf::LogSettings logs;
    logs.log_output.outdir = settings_.folder;
    logs.enable_trace = false;
    mlperf::StartTest(this, this, test, logs, settings_.audit);
  } catch (const GivenUp&) {
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void LoadGenRun::answer_all() { answers_.loop(); }

void LoadGenRun::LoadSamplesToRam(const std::vector<mlperf::QuerySampleIndex>& samples) {
  try {
    loaded_.assign(samples.begin(), samples.end());
    system_.load(loaded_);
    system_.start([this](std::span<const loadtest::Answer> answers) { receive(answers); });
    started_ = true;
  } catch (...) {
    failure_ = std::current_exception();
    give_up(End::kFailed);
    leave();
  }
}

void LoadGenRun::UnloadSamplesFromRam(const std::vector<mlperf::QuerySampleIndex>&) {
  await_logger();
  release();
}

void LoadGenRun::release() {
  try {
    if (std::exchange(started_, false)) system_.stop();
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  try {
    if (!loaded_.empty()) system_.unload(loaded_);
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  loaded_.clear();
}

void LoadGenRun::IssueQuery(const std::vector<mlperf::QuerySample>& samples) {
  if (!in_test_) first_issue_ = first_issue_ == Clock::time_point{} ? Clock::now() : first_issue_;
  in_test_ = true;
  if (end_.load(std::memory_order_relaxed) != End::kNone) leave();
  queries_.clear();
  for (const mlperf::QuerySample& sample : samples) {
    const auto* query = reinterpret_cast<const SampleMetadata*>(sample.id)->query_metadata;
    lag_.add(in_seconds(query->issued_start_time - query->scheduled_time));
    queries_.push_back({sample.id, sample.index});
  }
  issued_.fetch_add(samples.size());
  system_.issue(queries_);
  if (one_by_one_) await_answers();
}

void LoadGenRun::FlushQueries() {
  system_.flush();
  await_answers();
  seconds_ = in_seconds(Clock::now() - first_issue_);
  if (is_last_test()) give_up(End::kFinished);
  if (end_.load() == End::kStopped) leave();
  in_test_ = false;
  reported_before_ = reported_.load();
}

void LoadGenRun::receive(std::span<const loadtest::Answer> answers) {
  received_.fetch_add(answers.size());
  if (!settings_.direct || accuracy_ || !LoadGenThreads::the().issuer().is_this_thread()) {
    answers_.put(answers);
    return;
  }
  direct_.clear();
  for (const loadtest::Answer& answer : answers) direct_.emplace_back(answer.id, 0, 0);
  report(direct_, latencies_[kIssuer]);
}

void LoadGenRun::report(Responses& responses, loadtest::Latencies& latency) {
  const auto now = Clock::now();
  std::uint64_t late = 0;
  for (const auto& response : responses) {
    const auto latency_ns = now - reinterpret_cast<const SampleMetadata*>(response.id)->query_metadata->scheduled_time;
    latency.add(in_seconds(latency_ns));
    late += std::chrono::duration_cast<std::chrono::nanoseconds>(latency_ns).count() > bound_ns_;
  }
  mlperf::QuerySamplesComplete(responses.data(), responses.size());
  if (late != 0 && late_.fetch_add(late) + late > most_late_) give_up(End::kHopeless);
  reported_.fetch_add(responses.size());
  if (awaited_.load()) {
    const std::scoped_lock lock(mutex_);
    all_reported_.notify_one();
  }
}

// LoadGen waits for answers after this, where nothing could end the run; so it is done here, where it can be left.
void LoadGenRun::await_answers() {
  constexpr auto kPoll = std::chrono::milliseconds(5);
  awaited_.store(true);
  {
    std::unique_lock lock(mutex_);
    while (reported_.load() < issued_.load() && end_.load() == End::kNone) all_reported_.wait_for(lock, kPoll);
  }
  awaited_.store(false);
  if (reported_.load() < issued_.load()) leave();
}

// One test makes a performance run; one for all samples that fit into memory at a time, an accuracy run. How many make
// a search for the peak is not known.
bool LoadGenRun::is_last_test() const noexcept {
  if (accuracy_) return issued_.load() >= settings_.sample_count;
  return settings_.mode == mlperf::TestMode::PerformanceOnly;
}

void LoadGenRun::give_up(End why) noexcept {
  End none = End::kNone;
  end_.compare_exchange_strong(none, why);
}

// LoadGen's AbortTest() ends its logging but neither the issuing of queries nor the waiting for answers, and leaves the
// latencies behind for the next test. So: no more answers, all answers so far logged, then AbortTest, and out of
// LoadGen by an exception while nothing of it runs on another thread.
void LoadGenRun::leave() {
  answers_.close();
  seconds_ = first_issue_ == Clock::time_point{} ? 0.0 : in_seconds(Clock::now() - first_issue_);
  auto& logger = mlperf::logging::GlobalLogger();
  if (in_test_) {
    const std::size_t answered = reported_.load() - reported_before_;
    logger.GetLatenciesBlocking(answered);
    logger.GetTokenLatencies(answered);
    logger.GetTimePerOutputToken(answered);
    logger.GetTokensPerSample(answered);
  }
  log_error(explanation(end_.load()));
  mlperf::AbortTest();
  throw GivenUp{};
}

void LoadGenRun::finish() {
  release();
  if (failure_) std::rethrow_exception(failure_);
}

loadtest::Latencies LoadGenRun::latency() const {
  loadtest::Latencies all = latencies_[kIssuer];
  all.add(latencies_[kAnswerer]);
  return all;
}

}  // namespace lanewise::loadgen
