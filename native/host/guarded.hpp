// What a thread's body runs in: whatever it throws becomes a Failure for whoever asks, and never ends the process.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "host/failure.hpp"

namespace lanewise::host {

// Runs action() and calls fail(Failure) with what it throws.
template <typename Action, typename Fail>
void guarded(Action&& action, Fail&& fail) {
  try {
    std::forward<Action>(action)();
  } catch (const Failure& failure) {
    std::forward<Fail>(fail)(failure);
  } catch (const std::exception& error) {
    std::forward<Fail>(fail)(Failure(std::string("a thread stopped: ") + error.what(), "please report this"));
  } catch (...) {
    std::forward<Fail>(fail)(Failure("a thread stopped for an unknown reason", "please report this"));
  }
}

}  // namespace lanewise::host
