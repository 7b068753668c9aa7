#include "sim/aggregates.hpp"

#include <algorithm>
#include <map>

#include "sim/numbers.hpp"

namespace lanewise::sim {
namespace {

// A hub has at least so many classes, and this part of all.
constexpr std::size_t kHubClasses = 32, kHubPart = 32;
// An aggregate has at least so many classes: fewer are as fast alone.
constexpr std::size_t kFewestClasses = 16;
// A slack resource stays this far below its capacity, so that no rounding makes it a bottleneck.
constexpr double kMargin = 1.0 - 1e-9;
// The assumed load of a slack resource is summed anew after so many changes: its rounding stays far below the margin.
constexpr std::int32_t kAssumedChanges = 256;

}  // namespace

Aggregates::Aggregates(const Network& network, const std::vector<bool>& ignored) : network_(network) {
  const std::size_t classes = network.classes().size();
  if (classes < kHubClasses) return;
  std::vector<std::size_t> users(ignored.size(), 0);
  for (const FlowClass& flow : network.classes()) {
    for (const Use& use : flow.uses) ++users[at(use.resource)];
  }
  bool any = false;
  for (std::size_t r = 0; r < users.size(); ++r) {
    hub_.push_back(!ignored[r] && users[r] >= std::max(kHubClasses, classes / kHubPart));
    any = any || hub_[r];
  }
  if (any) find_groups(ignored);
}

void Aggregates::find_groups(const std::vector<bool>& ignored) {
  const auto& flows = network_.classes();
  std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> by_hubs;
  for (std::size_t k = 0; k < flows.size(); ++k) {
    std::vector<std::int32_t> hubs;
    for (const Use& use : flows[k].uses) {
      if (hub_[at(use.resource)]) hubs.push_back(use.resource);
    }
    if (!hubs.empty()) by_hubs[hubs].push_back(static_cast<std::int32_t>(k));
  }
  aggregate_.assign(flows.size(), -1);
  for (const auto& [hubs, classes] : by_hubs) {
    if (classes.size() < kFewestClasses) continue;
    for (const auto k : classes) aggregate_[at(k)] = static_cast<std::int32_t>(groups_.size());
    groups_.push_back({.hubs = hubs, .classes = classes});
  }
  ignored_ = ignored;
}

void Aggregates::start() {
  const auto& flows = network_.classes();
  demands_.resize(flows.size());
  resources_.resize(ignored_.size());
  for (std::size_t k = 0; k < flows.size(); ++k) {
    demands_[k].first = static_cast<std::int32_t>(loads_.size());
    for (const Use& use : flows[k].uses) {
      if (ignored_[at(use.resource)] || hub_[at(use.resource)]) continue;
      loads_.push_back({.index = use.resource, .coefficient = use.coefficient});
      ++resources_[at(use.resource)].last;
    }
    demands_[k].last = static_cast<std::int32_t>(loads_.size());
    demands_[k].bounds = demands_[k].last - demands_[k].first + 1;
  }
  users_.resize(loads_.size());
  std::int32_t first = 0;
  for (std::size_t r = 0; r < resources_.size(); ++r) {
    Resource& resource = resources_[r];
    const std::int32_t users = resource.last;
    resource.limit = network_.capacities()[r] * kMargin;
    resource.first = resource.last = first;
    first += users;
    if (users == 0) continue;
    resource.listed = true;
    changed_.push_back(static_cast<std::int32_t>(r));
  }
  for (std::size_t k = 0; k < flows.size(); ++k) {
    for (auto i = demands_[k].first; i < demands_[k].last; ++i) {
      users_[at(resources_[at(loads_[at(i)].index)].last++)] = {.index = static_cast<std::int32_t>(k),
                                                                .coefficient = loads_[at(i)].coefficient};
    }
  }
}

void Aggregates::set_count(std::size_t k, double count) {
  demands_[k].count = count;
  assume(k);
}

void Aggregates::set_ceiling(std::size_t a, double ceiling) {
  groups_[a].ceiling = ceiling;
  for (const auto k : groups_[a].classes) {
    bar(at(k));
    if (demands_[at(k)].count > 0.0) assume(at(k));
  }
}

// Brings what the resources of a class are assumed to carry up to date with its count and its ceiling.
void Aggregates::assume(std::size_t k) {
  Demand& demand = demands_[k];
  const double ceiling = aggregate_[k] < 0 ? kInfinity : groups_[at(aggregate_[k])].ceiling;
  const bool has = demand.count > 0.0, unbounded = has && ceiling == kInfinity;
  const double pull = has && !unbounded ? demand.count * network_.classes()[k].weight * ceiling : 0.0;
  const double more = pull - demand.pull;
  const std::int32_t change = unbounded - demand.unbounded;
  demand.pull = pull;
  demand.unbounded = unbounded;
  for (auto i = demand.first; i < demand.last; ++i) {
    Resource& resource = resources_[at(loads_[at(i)].index)];
    resource.assumed += more * loads_[at(i)].coefficient;
    resource.unbounded += change;
    ++resource.changes;
    if (resource.listed) continue;
    resource.listed = true;
    changed_.push_back(loads_[at(i)].index);
  }
}

// Whether the cap of a class is below its ceiling, or there is none.
void Aggregates::bar(std::size_t k) {
  const double ceiling = groups_[at(aggregate_[k])].ceiling;
  const FlowClass& flow = network_.classes()[k];
  const bool barred = ceiling == kInfinity || flow.cap / flow.weight < ceiling;
  if (barred == demands_[k].barred) return;
  demands_[k].barred = barred;
  count_bound(k, barred ? 1 : -1);
}

void Aggregates::count_bound(std::size_t k, int change) {
  Demand& demand = demands_[k];
  const bool joined = demand.bounds == 0;
  demand.bounds += change;
  if (joined != (demand.bounds == 0) && demand.count > 0.0) switched_.push_back(static_cast<std::int32_t>(k));
}

void Aggregates::decide() {
  for (const auto r : changed_) {
    Resource& resource = resources_[at(r)];
    resource.listed = false;
    const bool slack = is_slack(resource);
    if (slack == resource.slack) continue;
    resource.slack = slack;
    for (auto i = resource.first; i < resource.last; ++i) count_bound(at(users_[at(i)].index), slack ? -1 : 1);
  }
  changed_.clear();
}

// Only what is summed from nothing makes a resource slack: what was far above its capacity may have lost its digits.
bool Aggregates::is_slack(Resource& resource) {
  if (resource.unbounded > 0) return false;
  if (resource.changes > kAssumedChanges || (!resource.slack && resource.assumed <= resource.limit)) {
    resource.assumed = 0.0;
    resource.changes = 0;
    for (auto i = resource.first; i < resource.last; ++i) {
      resource.assumed += demands_[at(users_[at(i)].index)].pull * users_[at(i)].coefficient;
    }
  }
  return resource.assumed <= resource.limit;
}

}  // namespace lanewise::sim
