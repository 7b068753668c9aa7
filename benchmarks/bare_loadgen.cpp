// LoadGen itself, the peer of benchmarks/loadgen_ceiling.py: one Server run on a system that answers at once.
//
//     bare_loadgen QPS SECONDS QUERIES BOUND PERCENTILE SEED plain|coalesced call|thread FOLDER
#include <loadgen.h>
#include <query_sample_library.h>
#include <system_under_test.h>
#include <test_settings.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using mlperf::QuerySample;
using mlperf::QuerySampleIndex;
using mlperf::QuerySampleResponse;

// Answers within IssueQuery.
class AtOnce : public mlperf::SystemUnderTest {
 public:
  const std::string& Name() override { return name_; }
  void IssueQuery(const std::vector<QuerySample>& samples) override {
    answers_.clear();
    for (const QuerySample& sample : samples) answers_.push_back({sample.id, 0, 0});
    mlperf::QuerySamplesComplete(answers_.data(), answers_.size());
  }
  void FlushQueries() override {}

 private:
  const std::string name_ = "answers within the call";
  std::vector<QuerySampleResponse> answers_;
};

// Hands queries to a thread, which answers all that have come.
class ByThread : public mlperf::SystemUnderTest {
 public:
  ~ByThread() override {
    {
      std::lock_guard held(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  const std::string& Name() override { return name_; }
  void IssueQuery(const std::vector<QuerySample>& samples) override {
    std::lock_guard held(mutex_);
    for (const QuerySample& sample : samples) waiting_.push_back({sample.id, 0, 0});
    changed_.notify_one();
  }
  void FlushQueries() override {}

 private:
  void work() {
    std::vector<QuerySampleResponse> taken;
    std::unique_lock held(mutex_);
    for (;;) {
      changed_.wait(held, [this] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      taken.clear();
      std::swap(taken, waiting_);
      held.unlock();
      mlperf::QuerySamplesComplete(taken.data(), taken.size());
      held.lock();
    }
  }

  const std::string name_ = "answers from a thread";
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<QuerySampleResponse> waiting_;
  bool ends_ = false;
  std::thread thread_{[this] { work(); }};
};

class Samples : public mlperf::QuerySampleLibrary {
 public:
  const std::string& Name() override { return name_; }
  size_t TotalSampleCount() override { return 1024; }
  size_t PerformanceSampleCount() override { return 1024; }
  void LoadSamplesToRam(const std::vector<QuerySampleIndex>&) override {}
  void UnloadSamplesFromRam(const std::vector<QuerySampleIndex>&) override {}

 private:
  const std::string name_ = "nothing";
};

}  // namespace

int main(int count, char** given) {
  if (count != 10) {
    std::fprintf(stderr, "%s QPS SECONDS QUERIES BOUND PERCENTILE SEED plain|coalesced call|thread FOLDER\n", given[0]);
    return 2;
  }
  mlperf::TestSettings settings;
  settings.scenario = mlperf::TestScenario::Server;
  settings.mode = mlperf::TestMode::PerformanceOnly;
  settings.server_target_qps = std::stod(given[1]);
  settings.min_duration_ms = static_cast<uint64_t>(std::stod(given[2]) * 1e3);
  settings.min_query_count = std::stoull(given[3]);
  settings.server_target_latency_ns = static_cast<uint64_t>(std::stod(given[4]) * 1e9);
  settings.server_target_latency_percentile = std::stod(given[5]);
  settings.qsl_rng_seed = settings.sample_index_rng_seed = settings.schedule_rng_seed = std::stoull(given[6]);
  settings.server_coalesce_queries = std::string(given[7]) == "coalesced";
  mlperf::LogSettings logs;
  logs.enable_trace = false;
  logs.log_output.outdir = given[9];
  Samples samples;
  if (std::string(given[8]) == "call") {
    AtOnce system;
    mlperf::StartTest(&system, &samples, settings, logs);
  } else {
    ByThread system;
    mlperf::StartTest(&system, &samples, settings, logs);
  }
}
