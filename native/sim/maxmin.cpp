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
  const auto& known = component.resources;
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
    for (const Use& use : flow.uses) {
      const double weighted = use.coefficient * flow.weight;
      loads_.push_back({local(use.resource), use.coefficient, weighted});
      users[at(loads_.back().resource)].emplace_back(k, weighted);
    }
    load_start_.push_back(static_cast<std::int32_t>(loads_.size()));
  }
  user_start_.push_back(0);
  for (const auto& list : users) {
    for (const auto& [k, weighted] : list) {
      users_.push_back(k);
      user_weighted_.push_back(weighted);
    }
    user_start_.push_back(static_cast<std::int32_t>(users_.size()));
  }
  slot_.assign(capacity_.size(), -1);
  filling_.resize(capacity_.size());
  level_.resize(capacity_.size());
  count_.resize(weight_.size());
}

void MaxMin::solve(std::span<const std::int32_t> active, std::span<const double> counts, std::span<double> rates,
                   std::span<std::int32_t> limits) {
  open(active, counts);
  double reached = 0.0;  // levels only rise; rounding must not make one fall
  while (rising_ > 0) {
    const double lowest = std::max(reached, lowest_level());
    const std::size_t next = next_rising(active);
    if (cap_level_[next] <= lowest * kTie && cap_level_[next] != kInfinity) {
      reached = std::max(reached, std::min(lowest, cap_level_[next]));
      rates[next] = cap_[next];
      limits[next] = kOwnCap;
      freeze(next, cap_[next], slots_);
      continue;
    }
    reached = lowest;
    const std::size_t full = first_at(lowest * kTie);
    const std::size_t resource = at(filling_[full].resource);
    for (auto i = at(user_start_[resource]); i < at(user_start_[resource + 1]); ++i) {
      const std::size_t k = at(users_[i]);
      if (count_[k] == 0.0) continue;
      rates[k] = weight_[k] * lowest;
      limits[k] = static_cast<std::int32_t>(resource);
      freeze(k, rates[k], full);
    }
    level_[full] = kInfinity;
  }
  for (std::size_t slot = 0; slot < slots_; ++slot) slot_[at(filling_[slot].resource)] = -1;
}

// Sums the demand of the active classes and finds the first level of each resource they use.
void MaxMin::open(std::span<const std::int32_t> active, std::span<const double> counts) {
  slots_ = 0;
  cursor_ = 0;
  rising_ = active.size();
  for (const auto index : active) {
    const std::size_t k = at(index);
    const double count = count_[k] = counts[k];
    for (auto i = at(load_start_[k]); i < at(load_start_[k + 1]); ++i) {
      auto& slot = slot_[at(loads_[i].resource)];
      if (slot < 0) {
        slot = static_cast<std::int32_t>(slots_);
        filling_[slots_++] = {capacity_[at(loads_[i].resource)], 0.0, 0.0, 0, loads_[i].resource};
      }
      Filling& filling = filling_[at(slot)];
      filling.demand += count * loads_[i].weighted;
      ++filling.rising;
    }
  }
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    filling_[slot].resum = kResum * filling_[slot].demand;
    level_[slot] = filling_[slot].left / filling_[slot].demand;
  }
}

// Takes class k out; the resource in slot `full` has nothing left and is not kept up to date.
void MaxMin::freeze(std::size_t k, double rate, std::size_t full) {
  const double count = count_[k];
  count_[k] = 0.0;
  --rising_;
  for (auto i = at(load_start_[k]); i < at(load_start_[k + 1]); ++i) {
    const std::size_t slot = at(slot_[at(loads_[i].resource)]);
    if (slot == full) continue;
    Filling& filling = filling_[slot];
    filling.left -= count * loads_[i].coefficient * rate;
    filling.demand -= count * loads_[i].weighted;
    if (--filling.rising == 0) {
      level_[slot] = kInfinity;
      continue;
    }
    if (filling.demand <= filling.resum) sum_demand(filling);
    level_[slot] = std::max(filling.left, 0.0) / filling.demand;
  }
}

void MaxMin::sum_demand(Filling& filling) {
  const std::size_t r = at(filling.resource);
  filling.demand = 0.0;
  for (auto i = at(user_start_[r]); i < at(user_start_[r + 1]); ++i) {
    filling.demand += count_[at(users_[i])] * user_weighted_[i];
  }
  filling.resum = kResum * filling.demand;
}

// The rising class of lowest cap level; active classes ascend by it.
std::size_t MaxMin::next_rising(std::span<const std::int32_t> active) {
  while (count_[at(active[cursor_])] == 0.0) ++cursor_;
  return at(active[cursor_]);
}

double MaxMin::lowest_level() const {
  // Four minima side by side, or each comparison waits for the one before.
  double a = kInfinity, b = kInfinity, c = kInfinity, d = kInfinity;
  std::size_t slot = 0;
  for (; slot + 4 <= slots_; slot += 4) {
    a = std::min(a, level_[slot]);
    b = std::min(b, level_[slot + 1]);
    c = std::min(c, level_[slot + 2]);
    d = std::min(d, level_[slot + 3]);
  }
  for (; slot < slots_; ++slot) a = std::min(a, level_[slot]);
  return std::min(std::min(a, b), std::min(c, d));
}

// The slot of the resource of lowest index that is full at `level`.
std::size_t MaxMin::first_at(double level) const {
  std::size_t first = slots_;
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    if (level_[slot] > level) continue;
    if (first == slots_ || filling_[slot].resource < filling_[first].resource) first = slot;
  }
  return first;
}

namespace {

void share_part(const Network& network, const Component& part, const std::vector<double>& counts, Shares& out) {
  const std::size_t size = part.classes.size();
  std::vector<double> count(size), rate(size);
  std::vector<std::int32_t> limit(size), active;
  for (std::size_t i = 0; i < size; ++i) {
    count[i] = counts[at(part.classes[i])];
    if (count[i] > 0.0) active.push_back(static_cast<std::int32_t>(i));
  }
  MaxMin(network, part).solve(active, count, rate, limit);
  for (const auto i : active) {
    const std::size_t k = at(part.classes[at(i)]);
    out.rates[k] = rate[at(i)];
    out.limits[k] = limit[at(i)] == kOwnCap ? kOwnCap : part.resources[at(limit[at(i)])];
    for (const Use& use : network.classes()[k].uses) {
      out.use[at(use.resource)] += counts[k] * use.coefficient * out.rates[k];
    }
  }
}

}  // namespace

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
  for (const Component& part : network.components()) share_part(network, part, counts, out);
  for (std::size_t r = 0; r < out.use.size(); ++r) {
    out.use[r] /= network.capacities()[r];
    if (out.use[r] > 1.0 && out.use[r] < 1.0 + 1e-9) out.use[r] = 1.0;  // rounding, not an overload
  }
  return out;
}

}  // namespace lanewise::sim
