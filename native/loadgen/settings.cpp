#include "loadgen/settings.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "host/failure.hpp"

namespace lanewise::loadgen {
namespace {

constexpr double kNanoseconds = 1e9;

std::uint64_t rounded(double value) { return static_cast<std::uint64_t>(std::llround(value)); }

mlperf::TestScenario scenario(const std::string& name) {
  if (name == "Server") return mlperf::TestScenario::Server;
  if (name == "Offline") return mlperf::TestScenario::Offline;
  if (name == "SingleStream") return mlperf::TestScenario::SingleStream;
  if (name == "MultiStream") return mlperf::TestScenario::MultiStream;
  throw host::Failure("unknown scenario '" + name + "'", "known: Server, Offline, SingleStream, MultiStream");
}

// SplitMix64: seeds that have nothing in common, from one.
std::uint64_t next_seed(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

void set_limits(const Settings& settings, mlperf::TestSettings& test) {
  test.min_duration_ms = rounded(settings.seconds * 1e3);
  test.min_query_count = settings.queries;
  test.server_target_latency_ns = rounded(settings.bound * kNanoseconds);
  test.server_target_latency_percentile = settings.percentile;
  test.single_stream_target_latency_percentile = settings.percentile;
  test.multi_stream_target_latency_percentile = settings.percentile;
  test.multi_stream_samples_per_query = settings.samples;
  test.server_coalesce_queries = settings.coalesce;
}

// The rate and the seeds are the search's own, so they override the files.
void set_rate_and_seeds(const Settings& settings, mlperf::TestSettings& test) {
  if (settings.qps > 0.0) {
    test.server_target_qps = test.offline_expected_qps = settings.qps;
    test.single_stream_expected_latency_ns = test.multi_stream_expected_latency_ns = kNanoseconds / settings.qps;
  }
  if (settings.seed != 0) {
    std::uint64_t state = settings.seed;
    test.qsl_rng_seed = next_seed(state);
    test.sample_index_rng_seed = next_seed(state);
    test.schedule_rng_seed = next_seed(state);
  }
  test.mode = settings.mode;
  test.server_num_issue_query_threads = 0;  // there is one issuing thread
}

}  // namespace

mlperf::TestSettings test_settings(const Settings& settings) {
  mlperf::TestSettings test;
  test.scenario = scenario(settings.scenario);
  set_limits(settings, test);
  for (const std::string& file : settings.configs) {
    // LoadGen calls its own text kind 0, and a second file of kind 1 in a process an error; kind 2 is read alike.
    if (test.FromConfig(file, settings.model, settings.scenario, file.empty() ? 0 : 2) != 0) {
      throw host::Failure("LoadGen cannot read " + file, "lines such as: *.Server.target_qps = 1000");
    }
  }
  set_rate_and_seeds(settings, test);
  return test;
}

std::uint64_t most_late(const mlperf::TestSettings& settings) {
  if (settings.scenario != mlperf::TestScenario::Server || settings.mode != mlperf::TestMode::PerformanceOnly) {
    return std::numeric_limits<std::uint64_t>::max();
  }
  // LoadGen makes as many arrivals as come in the duration; eight standard deviations more will not.
  const double expected = settings.server_target_qps * static_cast<double>(settings.min_duration_ms) / 1e3;
  const double most =
      std::max(static_cast<double>(settings.min_query_count), expected + 8.0 * std::sqrt(expected) + 8.0);
  return static_cast<std::uint64_t>(std::ceil(most * (1.0 - settings.server_target_latency_percentile)));
}

}  // namespace lanewise::loadgen
