#include "loadgen/driver.hpp"

#include <chrono>
#include <thread>

#include "host/failure.hpp"

namespace lanewise::loadgen {
namespace {

constexpr double kTick = 0.05;   // s
constexpr double kRest = 1e-3;   // s
constexpr double kStill = 4e-3;  // s; what the scheduler takes of a machine with work to do is less

bool goes_on(LoadGenRun& run, const Tick& tick) { return tick({run.issued(), run.answered(), run.late()}); }

// Waits until the system has answered every query; false if `tick` ends the wait.
bool drain(LoadGenRun& run, const Tick& tick) {
  run.cancel();
  while (!run.drained()) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kTick));
    if (!goes_on(run, tick)) return run.drained();
  }
  return true;
}

// Waits for the run's end or a tick; true if it has ended. This thread has nothing to do: where it oversleeps a rest,
// the machine stood still, as virtual ones do when others on their host run.
bool rest(LoadGenRun& run, LoadGenThread& issuer) {
  using Clock = std::chrono::steady_clock;
  for (double passed = 0.0; passed < kTick;) {
    const auto before = Clock::now();
    if (issuer.wait_for(kRest)) return true;
    const double slept = std::chrono::duration<double>(Clock::now() - before).count();
    passed += slept;
    if (slept - kRest > kStill && run.issued() > 0) run.stood_still(slept - kRest);
  }
  return false;
}

}  // namespace

std::shared_ptr<LoadGenRun> run_load(loadtest::SystemUnderTest& system, const Settings& settings, const Tick& tick) {
  LoadGenThreads& threads = LoadGenThreads::the();
  std::unique_lock lock(threads.run_mutex(), std::try_to_lock);
  if (!lock.owns_lock()) {
    throw host::Failure("a load test runs in this process already", "wait for its end; LoadGen runs one at a time");
  }
  auto run = std::make_shared<LoadGenRun>(system, settings);
  threads.answerer().begin([&run] { run->answer_all(); });
  threads.issuer().begin([&run] { run->issue_all(); });
  while (!rest(*run, threads.issuer())) {
    if (!goes_on(*run, tick)) run->stop();
    run->stop_if_failed();
  }
  run->close();
  threads.answerer().wait();
  if (!drain(*run, tick)) {
    // The system may answer at any time from now on; what it then calls must still be there.
    new std::shared_ptr<LoadGenRun>(run);
    throw host::Failure("the system under test does not answer its queries", "start anew; it cannot be used any more");
  }
  run->finish();
  return run;
}

}  // namespace lanewise::loadgen
