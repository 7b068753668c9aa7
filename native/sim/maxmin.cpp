#include "sim/maxmin.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lanewise::sim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Levels this close are one level: which of two equal limits is named must not hang on rounding.
constexpr double kTie = 1.0 + 1e-12;
// Demand is summed anew once subtraction has left this part of it, which bounds the lost digits.
constexpr double kResum = 1e-3;
// Flows per class: beyond 2^53 a double no longer counts.
constexpr double kMostFlows = 9007199254740992.0;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace

MaxMin::MaxMin(const Network& network, const Component& component) {
  const auto& known = component.resources;  // ascending
  const auto local = [&known](std::int32_t resource) {
    return static_cast<std::int32_t>(std::lower_bound(known.begin(), known.end(), resource) - known.begin());
  };
  for (const auto r : known) capacity_.push_back(network.capacities()[at(r)]);
  std::vector<std::vector<std::pair<std::int32_t, double>>> users(capacity_.size());
  load_start_.push_back(0);
  for (const auto global : component.classes) {
    const FlowClass& flow = network.classes()[at(global)];
    const auto k = static_cast<std::int32_t>(weight_.size());
    weight_.push_back(flow.weight);
    cap_.push_back(flow.cap);
    cap_level_.push_back(flow.cap / flow.weight);
    if (std::isfinite(flow.cap)) by_cap_level_.push_back(k);
    for (const Use& use : flow.uses) {
      const double weighted = use.coefficient * flow.weight;
      loads_.push_back({local(use.resource), use.coefficient, weighted});
      users[at(loads_.back().resource)].emplace_back(k, weighted);
    }
    load_start_.push_back(static_cast<std::int32_t>(loads_.size()));
  }
  std::stable_sort(by_cap_level_.begin(), by_cap_level_.end(),
                   [this](auto a, auto b) { return cap_level_[at(a)] < cap_level_[at(b)]; });
  user_start_.push_back(0);
  for (const auto& list : users) {
    for (const auto& [k, weighted] : list) {
      users_.push_back(k);
      user_weighted_.push_back(weighted);
    }
    user_start_.push_back(static_cast<std::int32_t>(users_.size()));
  }
  resource_.resize(capacity_.size());
  level_.resize(capacity_.size());
  count_.resize(weight_.size());
}

void MaxMin::solve(std::span<const double> counts, std::span<double> rates, std::span<std::int32_t> limits) {
  open(counts, rates, limits);
  double reached = 0.0;  // levels only rise; rounding must not make one fall
  while (rising_ > 0) {
    const double lowest = std::max(reached, lowest_level());
    const std::size_t capped = next_capped();
    if (capped < classes() && cap_level_[capped] <= lowest * kTie) {
      reached = std::max(reached, std::min(lowest, cap_level_[capped]));
      rates[capped] = cap_[capped];
      limits[capped] = kOwnCap;
      freeze(capped, cap_[capped], resource_.size());
      continue;
    }
    std::size_t full = 0;
    while (!(level_[full] <= lowest * kTie)) ++full;
    reached = lowest;
    for (auto i = at(user_start_[full]); i < at(user_start_[full + 1]); ++i) {
      const std::size_t k = at(users_[i]);
      if (count_[k] == 0.0) continue;
      rates[k] = weight_[k] * lowest;
      limits[k] = static_cast<std::int32_t>(full);
      freeze(k, rates[k], full);
    }
    level_[full] = kInfinity;
  }
}

void MaxMin::open(std::span<const double> counts, std::span<double> rates, std::span<std::int32_t> limits) {
  for (auto& resource : resource_) resource = {0.0, 0.0, 0.0, 0};
  rising_ = 0;
  cap_cursor_ = 0;
  for (std::size_t k = 0; k < classes(); ++k) {
    rates[k] = 0.0;
    limits[k] = kIdle;
    const double count = count_[k] = counts[k];
    if (count == 0.0) continue;
    ++rising_;
    for (auto i = at(load_start_[k]); i < at(load_start_[k + 1]); ++i) {
      Resource& resource = resource_[at(loads_[i].resource)];
      resource.demand += count * loads_[i].weighted;
      ++resource.rising;
    }
  }
  for (std::size_t r = 0; r < resource_.size(); ++r) {
    resource_[r].left = capacity_[r];
    resource_[r].resum = kResum * resource_[r].demand;
    level_[r] = resource_[r].rising > 0 ? capacity_[r] / resource_[r].demand : kInfinity;
  }
}

// Takes class k out; resource `full` has nothing left and is not kept up to date.
void MaxMin::freeze(std::size_t k, double rate, std::size_t full) {
  const double count = count_[k];
  count_[k] = 0.0;
  --rising_;
  for (auto i = at(load_start_[k]); i < at(load_start_[k + 1]); ++i) {
    const std::size_t r = at(loads_[i].resource);
    if (r == full) continue;
    Resource& resource = resource_[r];
    resource.left -= count * loads_[i].coefficient * rate;
    resource.demand -= count * loads_[i].weighted;
    if (--resource.rising == 0) {
      level_[r] = kInfinity;
      continue;
    }
    if (resource.demand <= resource.resum) sum_demand(r);
    level_[r] = std::max(resource.left, 0.0) / resource.demand;
  }
}

void MaxMin::sum_demand(std::size_t r) {
  double demand = 0.0;
  for (auto i = at(user_start_[r]); i < at(user_start_[r + 1]); ++i) demand += count_[at(users_[i])] * user_weighted_[i];
  resource_[r].demand = demand;
  resource_[r].resum = kResum * demand;
}

// The rising class with the lowest cap level, or classes() when none has a cap.
std::size_t MaxMin::next_capped() {
  while (cap_cursor_ < by_cap_level_.size()) {
    const std::size_t k = at(by_cap_level_[cap_cursor_]);
    if (count_[k] != 0.0) return k;
    ++cap_cursor_;
  }
  return classes();
}

double MaxMin::lowest_level() const {
  // Four minima side by side, or each comparison waits for the one before.
  double a = kInfinity, b = kInfinity, c = kInfinity, d = kInfinity;
  const std::size_t size = level_.size();
  std::size_t r = 0;
  for (; r + 4 <= size; r += 4) {
    a = std::min(a, level_[r]);
    b = std::min(b, level_[r + 1]);
    c = std::min(c, level_[r + 2]);
    d = std::min(d, level_[r + 3]);
  }
  for (; r < size; ++r) a = std::min(a, level_[r]);
  return std::min(std::min(a, b), std::min(c, d));
}

Shares share(const Network& network, const std::vector<double>& counts) {
  const std::size_t classes = network.classes().size();
  if (counts.size() != classes) {
    throw BadInput(std::to_string(counts.size()) + " counts for " + std::to_string(classes) + " flow classes",
                   "give one count for each class");
  }
  for (std::size_t k = 0; k < classes; ++k) {
    if (counts[k] >= 0.0 && counts[k] <= kMostFlows && counts[k] == std::floor(counts[k])) continue;
    throw BadInput("flow class " + std::to_string(k) + " has a count that is not a whole number of flows",
                   "counts are whole numbers from 0 to 2^53");
  }
  Shares out{std::vector<double>(classes), std::vector<std::int32_t>(classes, kIdle),
             std::vector<double>(network.capacities().size())};
  for (const Component& part : network.components()) {
    const std::size_t size = part.classes.size();
    std::vector<double> count(size), rate(size);
    std::vector<std::int32_t> limit(size);
    for (std::size_t i = 0; i < size; ++i) count[i] = counts[at(part.classes[i])];
    MaxMin(network, part).solve(count, rate, limit);
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t k = at(part.classes[i]);
      out.rates[k] = rate[i];
      out.limits[k] = limit[i] >= 0 ? part.resources[at(limit[i])] : limit[i];
      for (const Use& use : network.classes()[k].uses) out.use[at(use.resource)] += count[i] * use.coefficient * rate[i];
    }
  }
  for (std::size_t r = 0; r < out.use.size(); ++r) {
    out.use[r] /= network.capacities()[r];
    if (out.use[r] > 1.0 && out.use[r] < 1.0 + 1e-9) out.use[r] = 1.0;  // rounding, not an overload
  }
  return out;
}

}  // namespace lanewise::sim
