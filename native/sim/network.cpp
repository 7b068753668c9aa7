#include "sim/network.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

namespace lanewise::sim {
namespace {

// Products of three such figures stay inside a double, so no later step can overflow or make a NaN.
constexpr double kSmallest = 1e-60;
constexpr double kLargest = 1e60;
constexpr const char* kRangeHint = "give SI units, between 1e-60 and 1e60";

bool in_range(double value) { return value >= kSmallest && value <= kLargest; }  // false for NaN

std::int32_t root_of(std::vector<std::int32_t>& parent, std::int32_t node) {
  while (parent[static_cast<std::size_t>(node)] != node) {
    auto& up = parent[static_cast<std::size_t>(node)];
    up = parent[static_cast<std::size_t>(up)];
    node = up;
  }
  return node;
}

// Sorts by resource, adds up repeated ones (a path may cross a resource twice) and drops zeros.
void normalise(std::vector<Use>& uses) {
  std::stable_sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.resource < b.resource; });
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

Network::Network(std::vector<double> capacities, std::vector<FlowClass> classes)
    : capacities_(std::move(capacities)), classes_(std::move(classes)) {
  check_resources();
  for (std::size_t k = 0; k < classes_.size(); ++k) check_class(k);
  find_components();
}

void Network::check_resources() const {
  for (std::size_t r = 0; r < capacities_.size(); ++r) {
    if (in_range(capacities_[r])) continue;
    throw BadInput("resource " + std::to_string(r) + " has capacity " + show(capacities_[r]) +
                       "; it must be positive and finite",
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

void Network::find_components() {
  const auto resources = capacities_.size();
  std::vector<std::int32_t> parent(resources);
  std::iota(parent.begin(), parent.end(), 0);
  for (const FlowClass& flow : classes_) {
    for (const Use& use : flow.uses) {
      const auto a = root_of(parent, flow.uses.front().resource);
      const auto b = root_of(parent, use.resource);
      parent[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    }
  }
  std::vector<std::int32_t> place(resources, -1);  // of a root: its component
  for (std::size_t k = 0; k < classes_.size(); ++k) {
    std::size_t where = components_.size();
    if (classes_[k].uses.empty()) {
      components_.emplace_back();  // bounded by its cap alone
    } else {
      auto& known = place[static_cast<std::size_t>(root_of(parent, classes_[k].uses.front().resource))];
      if (known < 0) {
        known = static_cast<std::int32_t>(where);
        components_.emplace_back();
      }
      where = static_cast<std::size_t>(known);
    }
    components_[where].classes.push_back(static_cast<std::int32_t>(k));
  }
  for (std::size_t r = 0; r < resources; ++r) {
    const auto where = place[static_cast<std::size_t>(root_of(parent, static_cast<std::int32_t>(r)))];
    if (where >= 0) components_[static_cast<std::size_t>(where)].resources.push_back(static_cast<std::int32_t>(r));
  }
  const auto cap_level = [this](std::int32_t k) {
    const FlowClass& flow = classes_[static_cast<std::size_t>(k)];
    return flow.cap / flow.weight;
  };
  for (Component& part : components_) {
    std::stable_sort(part.classes.begin(), part.classes.end(),
                     [&](auto a, auto b) { return cap_level(a) < cap_level(b); });
  }
}

}  // namespace lanewise::sim
