#include "loadgen/driver.hpp"

#include <chrono>
#include <thread>

#include "host/failure.hpp"

namespace lanewise::loadgen {
namespace {

constexpr double kTick = 0.05;   // s
constexpr double kRest = 1e-3;   // s
constexpr double kStill = 4e-3;  // s; what the scheduler takes of a machine with work to do is less

bool goes_on(Run& run, const Tick& tick) { return tick({run.issued(), run.answered(), run.late()}); }

// Waits until the system has answered what it was asked; false if the caller does not want to.
bool drain(Run& run, const Tick& tick) {
  run.cancel();
  while (!run.drained()) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kTick));
    if (!goes_on(run, tick)) return run.drained();
  }
  return true;
}

// Waits for the run's end or a tick; true if it has ended. This thread has nothing to do: where it oversleeps a rest, the
// machine stood still, as virtual ones do when others on their host run.
bool rest(Run& run, Worker& issuer) {
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

std::shared_ptr<Run> drive(loadtest::System& system, const Settings& settings, const Tick& tick) {
  Stage& stage = Stage::the();
  std::unique_lock turn(stage.turn(), std::try_to_lock);
  if (!turn.owns_lock()) {
    throw host::Failure("a load test runs in this process already", "wait for its end; LoadGen runs one at a time");
  }
  auto run = std::make_shared<Run>(system, settings);
  stage.answerer().begin([&run] { run->answer_all(); });
  stage.issuer().begin([&run] { run->issue_all(); });
  while (!rest(*run, stage.issuer())) {
    if (!goes_on(*run, tick)) run->stop();
  }
  run->close();
  stage.answerer().wait();
  if (!drain(*run, tick)) {
    // The system may answer at any time from now on; what it then calls must still be there.
    new std::shared_ptr<Run>(run);
    throw host::Failure("the system under test does not answer its queries", "start anew; it cannot be used any more");
  }
  run->finish();
  return run;
}

}  // namespace lanewise::loadgen
