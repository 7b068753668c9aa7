#include "sim/maxmin.hpp"

#include <algorithm>
#include <utility>

#include "sim/numbers.hpp"

namespace lanewise::sim {
namespace {

// Demand is summed anew once subtraction has left this part of it: that bounds the digits it loses.
constexpr double kResum = 0.1;
// What is left of a resource is summed anew after so many changes, or so many for each user if that is more: so its
// rounding stays below 1e-12 of the capacity, at a constant cost per change.
constexpr std::int32_t kChanges = 256, kChangesPerUser = 4;
// So often only those who must are solved as well; then all who share a full resource, lest rounds become many.
constexpr int kPatience = 4;

template <typename T>
std::int32_t size_of(const std::vector<T>& list) {
  return static_cast<std::int32_t>(list.size());
}

}  // namespace

MaxMin::MaxMin(const Network& network)
    : network_(network), dominated_(find_dominated(network)), aggregates_(network, dominated()) {
  for (const double capacity : network.capacities()) resources_.push_back({.left = capacity, .capacity = capacity});
  for (const FlowClass& flow : network.classes()) {
    const std::int32_t first = size_of(loads_);
    double most = kInfinity;
    for (const Use& use : flow.uses) {
      Resource& resource = resources_[at(use.resource)];
      most = std::min(most, resource.capacity / use.coefficient);
      if (!dominated_[at(use.resource)].empty()) continue;
      ++resource.users;
      loads_.push_back({.resource = use.resource, .user = 0, .coefficient = use.coefficient});
    }
    classes_.push_back({.weight = flow.weight, .cap = flow.cap, .most = most, .first = first, .last = size_of(loads_)});
  }
  add_aggregates();
  users_.resize(loads_.size());
  levels_.resize(resources_.size());
  std::int32_t first = 0;
  for (Resource& resource : resources_) {
    resource.first = first;
    first += std::exchange(resource.users, 0);
  }
}

void MaxMin::add_aggregates() {
  sums_.resize(aggregates_.size());
  for (std::size_t a = 0; a < sums_.size(); ++a) {
    const std::int32_t first = size_of(loads_);
    sums_[a].peaks.resize(aggregates_.hubs(a).size());
    for (const auto r : aggregates_.hubs(a)) {
      resources_[at(r)].hub = true;
      ++resources_[at(r)].users;
      loads_.push_back({.resource = r, .user = 0, .coefficient = 0.0});
    }
    classes_.push_back({.weight = 1.0, .cap = kInfinity, .most = kInfinity, .first = first, .last = size_of(loads_)});
  }
}

// Finds the resources that need no solving: all who use one also use another that every byte of theirs fills at least
// as much. Links in a row are the common case. Of two alike the one of lower index stays.
std::vector<std::vector<MaxMin::Taker>> MaxMin::find_dominated(const Network& network) {
  const auto& flows = network.classes();
  const auto& capacities = network.capacities();
  std::vector<std::vector<Taker>> takers(capacities.size());
  for (std::size_t k = 0; k < flows.size(); ++k) {
    for (const Use& use : flows[k].uses) {
      takers[at(use.resource)].push_back({.flow_class = static_cast<std::int32_t>(k), .coefficient = use.coefficient});
    }
  }
  const auto share = [&](const Taker& taker, std::int32_t r) {
    for (const Use& use : flows[at(taker.flow_class)].uses) {
      if (use.resource == r) return use.coefficient / capacities[at(r)];
    }
    return 0.0;
  };
  const auto covers = [&](std::int32_t other, std::int32_t r) {
    if (other == r) return false;
    bool alike = takers[at(other)].size() == takers[at(r)].size();
    for (const Taker& taker : takers[at(r)]) {
      const double here = taker.coefficient / capacities[at(r)], there = share(taker, other);
      if (there < here) return false;
      alike = alike && there == here;
    }
    return !alike || other < r;
  };
  std::vector<std::vector<Taker>> found(capacities.size());
  for (std::int32_t r = 0; r < size_of(capacities); ++r) {
    if (takers[at(r)].empty()) continue;
    const auto& others = flows[at(takers[at(r)].front().flow_class)].uses;
    const bool dominated = std::ranges::any_of(others, [&](const Use& use) { return covers(use.resource, r); });
    if (dominated) found[at(r)] = takers[at(r)];
  }
  return found;
}

std::vector<bool> MaxMin::dominated() const {
  std::vector<bool> out;
  out.reserve(dominated_.size());
  for (const auto& takers : dominated_) out.push_back(!takers.empty());
  return out;
}

void MaxMin::set_count(std::size_t k, double count) {
  Class& flow = classes_[k];
  flow.count = count;
  if (flow.listed) return;
  flow.listed = true;
  changed_.push_back(static_cast<std::int32_t>(k));
}

std::span<const std::int32_t> MaxMin::solve() {
  ++solves_;
  for (const auto k : free_) classes_[at(k)].free = false;
  free_.clear();
  reached_.clear();
  switched_.clear();
  if (!find_free()) return free_;
  int round = 0, raises = 0;
  do {
    rising_ = 0;
    bounds_.clear();
    least_bound_ = kInfinity;
    ordered_ = false;
    for (; rising_ < free_.size(); ++rising_) restart(free_[rising_]);  // this frees more
    open();
    fill();
  } while (raise_ceilings(raises++) || widen(round++));
  plan_ceilings();
  return free_;
}

// The class has its first flow.
void MaxMin::enter(std::int32_t k) {
  const Class& flow = classes_[at(k)];
  for (auto i = flow.first; i < flow.last; ++i) {
    Resource& resource = resources_[at(loads_[at(i)].resource)];
    loads_[at(i)].user = resource.first + resource.users++;
    users_[at(loads_[at(i)].user)] = {.flow_class = k, .load = i};
  }
}

// The class has no flow any more.
void MaxMin::leave(std::int32_t k) {
  Class& flow = classes_[at(k)];
  if (flow.holder >= 0) --resources_[at(flow.holder)].holding;
  for (auto i = flow.first; i < flow.last; ++i) {
    const Load& load = loads_[at(i)];
    Resource& resource = resources_[at(load.resource)];
    resource.left += flow.solved * load.coefficient * flow.rate;
    ++resource.changes;
    const User last = users_[at(resource.first + --resource.users)];
    users_[at(load.user)] = last;
    loads_[at(last.load)].user = load.user;
  }
  flow.holder = kOwnCap;
  flow.solved = flow.rate = flow.level = 0.0;
}

// Finds who has to be solved for the changed counts; false if none did change.
bool MaxMin::find_free() {
  std::size_t kept = 0;
  for (const auto k : changed_) {
    Class& flow = classes_[at(k)];
    flow.listed = false;
    if (flow.count != flow.solved) changed_[kept++] = k;  // else one flow ended and a like one began: the rates hold
  }
  changed_.resize(kept);
  if (kept == 0) return false;
  if (!sums_.empty()) introduce();
  for (const auto k : changed_) present(k);
  free_changed();
  return true;
}

// Brings a changed class up to date among the users of its resources.
void MaxMin::present(std::int32_t k) {
  Class& flow = classes_[at(k)];
  flow.listed = false;
  if (!sums_.empty() && present_member(k)) return;
  if (flow.count == flow.solved) return;
  if (flow.solved == 0.0) enter(k);
  if (flow.count == 0.0) leave(k);
  flow.bound = std::min(flow.cap, flow.most / flow.count);
  flow.bound_level = flow.bound / flow.weight;
}

// Frees the changed classes that have flows, and those whom the resources of the others hold: also of members, for what
// one of them uses may just have become slack.
void MaxMin::free_changed() {
  if (!sums_.empty()) present_sums();
  for (const auto k : changed_) {
    const Class& flow = classes_[at(k)];
    if (flow.count > 0.0 && !flow.member) {
      release(k);
      continue;
    }
    for (auto i = flow.first; i < flow.last; ++i) {
      const auto r = loads_[at(i)].resource;
      if (resources_[at(r)].reached != solves_) reach(r);
    }
  }
  changed_.clear();
}

void MaxMin::release(std::int32_t k) {
  Class& flow = classes_[at(k)];
  if (flow.free) return;
  flow.free = true;
  free_.push_back(k);
}

// What a free class uses may fill later or earlier than it did, so those it holds are free as well.
void MaxMin::reach(std::int32_t r) {
  Resource& resource = resources_[at(r)];
  resource.reached = solves_;
  resource.demand = resource.pressure = 0.0;
  resource.rising = 0;
  reached_.push_back(r);
  if (resource.holding == 0) return;
  for (auto i = resource.first; i < resource.first + resource.users; ++i) {
    const auto k = users_[at(i)].flow_class;
    if (classes_[at(k)].holder == r) release(k);
  }
}

// Takes a free class out of the present rates, so that it rises from zero.
void MaxMin::restart(std::int32_t k) {
  Class& flow = classes_[at(k)];
  if (flow.holder >= 0) --resources_[at(flow.holder)].holding;
  flow.holder = kOwnCap;
  flow.rising = true;
  bounds_.append({.level = flow.bound_level, .index = k});
  least_bound_ = std::min(least_bound_, flow.bound_level);
  const double had = flow.solved * flow.rate, pull = flow.count * flow.weight, most = flow.count * flow.bound;
  for (auto i = flow.first; i < flow.last; ++i) {
    const Load& load = loads_[at(i)];
    Resource& resource = resources_[at(load.resource)];
    if (resource.reached != solves_) reach(load.resource);
    resource.left += had * load.coefficient;
    resource.demand += pull * load.coefficient;
    resource.pressure += most * load.coefficient;
    ++resource.rising;
  }
}

// Finds the resources that can bind: the others have room for the free classes at their bounds.
void MaxMin::open() {
  fills_.clear();
  for (const auto r : reached_) {
    Resource& resource = resources_[at(r)];
    resource.bounds = false;
    resource.shared = resource.rising < resource.users;
    resource.changes += 2 * resource.rising;
    if (!resource.shared || resource.changes > std::max(kChanges, kChangesPerUser * resource.users)) {
      resource.left = resource.shared ? resource.capacity - taken(resource) : resource.capacity;
      resource.changes = 0;
    }
    if (resource.pressure <= resource.left * kTie) continue;
    levels_[at(r)].resum = kResum * resource.demand;
    fills_.append({.level = level_of(r), .index = r});
  }
  fills_.restore();
}

// What the classes that are not free take.
double MaxMin::taken(const Resource& resource) const {
  double sum = 0.0;
  for (auto i = resource.first; i < resource.first + resource.users; ++i) {
    const Class& flow = classes_[at(users_[at(i)].flow_class)];
    if (!flow.free) sum += flow.solved * flow.rate * loads_[at(users_[at(i)].load)].coefficient;
  }
  return sum;
}

void MaxMin::fill() {
  double reached = 0.0;  // levels only rise; rounding must not make one fall
  while (rising_ > 0) {
    const double lowest = std::max(reached, lowest_level());
    if (least_bound_ > lowest * kTie) {
      reached = lowest;
      freeze_users(fills_.top().index, lowest);
      continue;
    }
    Class& flow = classes_[at(pop_bound())];
    if (!flow.rising) continue;
    reached = std::max(reached, std::min(lowest, flow.bound_level));
    freeze(flow, flow.bound, flow.bound_level, kOwnCap);
  }
}

// Takes the class of lowest bound level.
std::int32_t MaxMin::pop_bound() {
  if (!ordered_) bounds_.restore();
  ordered_ = true;
  const std::int32_t k = bounds_.top().index;
  bounds_.pop();
  least_bound_ = bounds_.empty() ? kInfinity : bounds_.top().level;
  return k;
}

// Ends the rise of a class.
void MaxMin::freeze(Class& flow, double rate, double level, std::int32_t holder) {
  --rising_;
  flow.rising = false;
  flow.solved = flow.count;
  flow.rate = rate;
  flow.level = level;
  flow.holder = holder;
  const double has = flow.count * rate, pull = flow.count * flow.weight;
  for (auto i = flow.first; i < flow.last; ++i) {
    const Load& load = loads_[at(i)];
    Resource& resource = resources_[at(load.resource)];
    resource.left -= has * load.coefficient;
    resource.demand -= pull * load.coefficient;
    --resource.rising;
  }
}

void MaxMin::freeze_users(std::int32_t r, double level) {
  Resource& resource = resources_[at(r)];
  resource.bounds = true;
  levels_[at(r)].held_level = level;
  for (auto i = resource.first; i < resource.first + resource.users; ++i) {
    Class& flow = classes_[at(users_[at(i)].flow_class)];
    if (!flow.rising) continue;
    freeze(flow, flow.weight * level, level, r);
    ++resource.holding;
  }
}

// The lowest level at which a resource is full, which is then on top of fills_. Levels only rise while classes freeze,
// so the one on top is lowest as soon as it is up to date.
double MaxMin::lowest_level() {
  while (!fills_.empty()) {
    const Mark top = fills_.top();
    if (resources_[at(top.index)].rising == 0) {
      fills_.pop();
      continue;
    }
    const double level = level_of(top.index);
    if (level <= top.level) return level;
    fills_.replace_top({.level = level, .index = top.index});
  }
  return kInfinity;
}

double MaxMin::level_of(std::int32_t r) {
  Resource& resource = resources_[at(r)];
  if (resource.demand <= levels_[at(r)].resum) {
    resource.demand = 0.0;
    for (auto i = resource.first; i < resource.first + resource.users; ++i) {
      const Class& flow = classes_[at(users_[at(i)].flow_class)];
      if (flow.rising) resource.demand += flow.count * flow.weight * loads_[at(users_[at(i)].load)].coefficient;
    }
    levels_[at(r)].resum = kResum * resource.demand;
  }
  return std::max(resource.left, 0.0) / resource.demand;
}

// Frees the classes that violate the bottleneck condition: they have a higher level than a full resource gives to
// others. Every class that is not free is limited by its own bound or by a resource that no free class uses.
bool MaxMin::widen(int round) {
  const std::size_t before = free_.size();
  for (const auto r : reached_) {
    const Resource& resource = resources_[at(r)];
    if (!resource.bounds || !resource.shared) continue;
    for (auto i = resource.first; i < resource.first + resource.users; ++i) {
      const auto k = users_[at(i)].flow_class;
      if (round >= kPatience || classes_[at(k)].level > levels_[at(r)].held_level * kTie) release(k);
    }
  }
  if (free_.size() == before) return false;
  begin_again();
  return true;
}

void MaxMin::begin_again() {
  for (const auto r : reached_) {
    Resource& resource = resources_[at(r)];
    resource.demand = resource.pressure = 0.0;
    resource.rising = 0;
  }
}

}  // namespace lanewise::sim
