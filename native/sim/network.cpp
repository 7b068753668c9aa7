#include "sim/network.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "sim/numbers.hpp"

namespace lanewise::sim {
namespace {

constexpr const char* kRangeHint = "give SI units, between 1e-60 and 1e60";

bool in_range(double value) { return value >= kSmallest && value <= kLargest; }  // false for NaN

// Sorts by resource, adds up repeated ones (a path may cross a resource twice) and drops zeros.
void normalise(std::vector<Use>& uses) {
  std::ranges::stable_sort(uses, {}, &Use::resource);
  std::vector<Use> merged;
  for (const Use& use : uses) {
    if (use.coefficient == 0.0) continue;
    if (!merged.empty() && merged.back().resource == use.resource) {
      merged.back().coefficient += use.coefficient;
    } else {
      merged.push_back(use);
    }
  }
  uses = std::move(merged);
}

}  // namespace

std::string show(double value) {
  std::ostringstream text;
  text.precision(6);
  text << value;
  return text.str();
}

Network::Network(std::vector<double> capacities, std::vector<FlowClass> classes, TurnRule turns)
    : capacities_(std::move(capacities)), classes_(std::move(classes)), turns_(turns) {
  if (!in_range(turns_.bytes) || !(turns_.apart >= 0.0 && turns_.apart < 1.0)) {
    throw BadInput("a turn of " + show(turns_.bytes) + " B, " + show(turns_.apart) + " of one apart",
                   "give bytes above zero, and a part from 0 to 1");
  }
  check_resources();
  for (std::size_t k = 0; k < classes_.size(); ++k) check_class(k);
}

void Network::check_resources() const {
  for (std::size_t r = 0; r < capacities_.size(); ++r) {
    if (in_range(capacities_[r])) continue;
    throw BadInput(
        "resource " + std::to_string(r) + " has capacity " + show(capacities_[r]) + "; it must be positive and finite",
        std::string(kRangeHint) + "; leave out a resource that limits nothing");
  }
}

void Network::check_class(std::size_t index) {
  FlowClass& flow = classes_[index];
  const std::string who = "flow class " + std::to_string(index);
  for (const Use& use : flow.uses) {
    if (use.resource < 0 || static_cast<std::size_t>(use.resource) >= capacities_.size()) {
      throw BadInput(who + " uses resource " + std::to_string(use.resource) + ", but there are " +
                         std::to_string(capacities_.size()),
                     "resources count from 0 in the order of the capacities");
    }
    if (use.coefficient != 0.0 && !in_range(use.coefficient)) {
      throw BadInput(who + " loads resource " + std::to_string(use.resource) + " with coefficient " +
                         show(use.coefficient) + "; it must be zero, or positive and finite",
                     kRangeHint);
    }
  }
  if (flow.sender < -1 || (flow.sender >= 0 && static_cast<std::size_t>(flow.sender) >= classes_.size())) {
    throw BadInput(who + " is of sender " + std::to_string(flow.sender), "senders count from 0, -1 is none");
  }
  if (!in_range(flow.weight)) {
    throw BadInput(who + " has weight " + show(flow.weight) + "; it must be positive and finite", kRangeHint);
  }
  if (!in_range(flow.cap) && !(std::isinf(flow.cap) && flow.cap > 0)) {
    throw BadInput(who + " has cap " + show(flow.cap) + "; it must be positive",
                   std::string(kRangeHint) + "; infinity means no cap");
  }
  normalise(flow.uses);
  if (flow.uses.empty() && std::isinf(flow.cap)) {
    throw BadInput(who + " is unbounded: it uses no resource and has no cap",
                   "give it a cap, or a resource with a coefficient above zero");
  }
}

}  // namespace lanewise::sim
