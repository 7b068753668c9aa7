// The settings of a LoadGen run as requested, and as LoadGen applied them.
#pragma once

#include <test_settings.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lanewise::loadgen {

struct Settings {
  std::string scenario = "Server";
  mlperf::TestMode mode = mlperf::TestMode::PerformanceOnly;
  double qps = 0.0;    // of samples in Offline; 0: that of the configuration files
  double bound = 0.0;  // s
  double percentile = 0.99;
  double seconds = 10.0;
  std::uint64_t queries = 100;
  std::uint64_t samples = 8;  // of a MultiStream query
  std::uint64_t seed = 0;     // 0: those of the configuration files
  bool coalesce = false;
  std::uint64_t sample_count = 0;
  std::uint64_t performance_sample_count = 0;
  std::string folder;                // of the logs; exists
  std::vector<std::string> configs;  // files in LoadGen's format; the later one wins; "": the one LoadGen carries
  std::string model = "*";           // whose lines of the files count
  std::string audit;                 // LoadGen's audit.config; "": none, whatever lies in the working folder
  bool end_hopeless = true;
  bool direct = true;  // answers that come from the issuing thread itself go straight back
};

// host::Failure for a scenario that does not exist or a file that LoadGen does not take; on the issuing thread.
mlperf::TestSettings test_settings(const Settings& settings);

// The most late queries with which a Server run can still become valid.
std::uint64_t most_late(const mlperf::TestSettings& settings);

}  // namespace lanewise::loadgen
