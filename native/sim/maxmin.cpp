#include "sim/maxmin.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lanewise::sim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Levels this close are one level: which of two equal limits is named must not hang on rounding.
constexpr double kTie = 1.0 + 1e-12;
// Demand is summed anew once subtraction has left this part of it, or after so many changes: that bounds the digits
// lost to 1e-15 / kResum, and 1e-16 times the changes.
constexpr double kResum = 1e-2;
constexpr std::int32_t kChanges = 64;
// Flows per class: beyond 2^53 a double no longer counts.
constexpr double kMostFlows = 9007199254740992.0;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

void insert_sorted(std::vector<std::int32_t>& list, std::int32_t value) {
  list.insert(std::lower_bound(list.begin(), list.end(), value), value);
}

void erase_sorted(std::vector<std::int32_t>& list, std::int32_t value) {
  list.erase(std::lower_bound(list.begin(), list.end(), value));
}

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
  const std::size_t classes = weight_.size(), resources = capacity_.size();
  for (auto* column : {&count_, &rate_, &rising_}) column->resize(classes);
  limit_.resize(classes, kOwnCap);
  active_.reserve(classes);
  demand_.resize(resources);
  used_.reserve(resources);
  filling_.resize(resources);
  level_.resize(resources);
  live_.resize(resources);
}

void MaxMin::set_count(std::size_t k, double count) {
  const double before = count_[k];
  if (count == before) return;
  count_[k] = count;
  const std::int32_t comes = (before == 0.0) - (count == 0.0);  // 1, or -1 when it goes
  if (comes > 0) insert_sorted(active_, static_cast<std::int32_t>(k));
  if (comes < 0) erase_sorted(active_, static_cast<std::int32_t>(k));
  for (auto i = at(load_start_[k]); i < at(load_start_[k + 1]); ++i) {
    const std::int32_t r = loads_[i].resource;
    Demand& demand = demand_[at(r)];
    if (comes > 0 && demand.classes == 0) insert_sorted(used_, r);
    demand.classes += comes;
    if (comes < 0 && demand.classes == 0) erase_sorted(used_, r);
    demand.sum += (count - before) * loads_[i].weighted;
    demand.resum = std::max(demand.resum, kResum * demand.sum);
    if (demand.sum <= demand.resum || ++demand.changes >= kChanges) sum(at(r), count_, demand);
  }
}

void MaxMin::solve() {
  for (const auto k : active_) rising_[at(k)] = count_[at(k)];
  for (std::size_t i = 0; i < used_.size(); ++i) {
    const std::size_t r = at(live_[i] = used_[i]);
    filling_[r] = {capacity_[r], demand_[r]};
    level_[r] = capacity_[r] / demand_[r].sum;
  }
  live_count_ = used_.size();
  rising_count_ = active_.size();
  cursor_ = 0;
  double reached = 0.0;  // levels only rise; rounding must not make one fall
  while (rising_count_ > 0) {
    const double lowest = std::max(reached, lowest_level());
    const std::size_t next = next_rising();
    if (cap_level_[next] <= lowest * kTie && cap_level_[next] != kInfinity) {
      reached = std::max(reached, std::min(lowest, cap_level_[next]));
      limit_[next] = kOwnCap;
      freeze(next, cap_[next], capacity_.size());
      continue;
    }
    reached = lowest;
    std::size_t place = 0;
    while (level_[at(live_[place])] > lowest * kTie) ++place;
    const std::size_t full = at(live_[place]);
    for (auto i = at(user_start_[full]); i < at(user_start_[full + 1]); ++i) {
      const std::size_t k = at(users_[i]);
      if (rising_[k] == 0.0) continue;
      limit_[k] = static_cast<std::int32_t>(full);
      freeze(k, weight_[k] * lowest, full);
    }
    level_[full] = kInfinity;
  }
}

// Ends the rise of class k; the resource `full` has nothing left and is not kept up to date.
void MaxMin::freeze(std::size_t k, double rate, std::size_t full) {
  const double count = rising_[k];
  rate_[k] = rate;
  rising_[k] = 0.0;
  --rising_count_;
  for (auto i = at(load_start_[k]); i < at(load_start_[k + 1]); ++i) {
    const std::size_t r = at(loads_[i].resource);
    if (r == full) continue;
    Filling& filling = filling_[r];
    filling.left -= count * loads_[i].coefficient * rate;
    filling.demand.sum -= count * loads_[i].weighted;
    if (--filling.demand.classes == 0) {
      level_[r] = kInfinity;
      continue;
    }
    if (filling.demand.sum <= filling.demand.resum) sum(r, rising_, filling.demand);
    level_[r] = std::max(filling.left, 0.0) / filling.demand.sum;
  }
}

void MaxMin::sum(std::size_t r, const std::vector<double>& counts, Demand& demand) const {
  demand.sum = 0.0;
  for (auto i = at(user_start_[r]); i < at(user_start_[r + 1]); ++i) {
    demand.sum += counts[at(users_[i])] * user_weighted_[i];
  }
  demand.resum = kResum * demand.sum;
  demand.changes = 0;
}

// The rising class of lowest cap level; active classes ascend by it.
std::size_t MaxMin::next_rising() {
  while (rising_[at(active_[cursor_])] == 0.0) ++cursor_;
  return at(active_[cursor_]);
}

// The lowest level of all resources; on the way drops those on which nothing rises any more.
double MaxMin::lowest_level() {
  double lowest = kInfinity;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < live_count_; ++i) {
    const double level = level_[at(live_[i])];
    live_[kept] = live_[i];
    kept += level != kInfinity;
    lowest = std::min(lowest, level);
  }
  live_count_ = kept;
  return lowest;
}

namespace {

void share_part(const Network& network, const Component& part, const std::vector<double>& counts, Shares& out) {
  MaxMin solver(network, part);
  for (std::size_t i = 0; i < part.classes.size(); ++i) solver.set_count(i, counts[at(part.classes[i])]);
  solver.solve();
  for (const auto i : solver.active()) {
    const std::size_t k = at(part.classes[at(i)]);
    const std::int32_t limit = solver.limit(at(i));
    out.rates[k] = solver.rate(at(i));
    out.limits[k] = limit == kOwnCap ? kOwnCap : part.resources[at(limit)];
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
