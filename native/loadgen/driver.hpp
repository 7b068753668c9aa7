// Runs a load on a system under test while the caller waits, and looks up from time to time.
#pragma once

#include <functional>
#include <memory>

#include "loadgen/run.hpp"

namespace lanewise::loadgen {

struct Progress {
  std::uint64_t issued, answered, late;
};

// Called about 20 times a second; false ends the run, a second false abandons a system that does not answer.
using Tick = std::function<bool(const Progress&)>;

// host::Failure where the system fails, or another run goes on in this process.
std::shared_ptr<LoadGenRun> run_load(loadtest::SystemUnderTest& system, const Settings& settings, const Tick& tick);

}  // namespace lanewise::loadgen
