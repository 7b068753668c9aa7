// Aggregates in the solver: who is a member, what the members take together, and how far their level may rise.
#include <algorithm>

#include "sim/maxmin.hpp"
#include "sim/numbers.hpp"

namespace lanewise::sim {
namespace {

// A ceiling is set this far above the level, and lowered once it is that far: the closer, the fewer classes are solved
// by themselves; the farther, the seldomer it is set.
constexpr double kAbove = 1.1, kFar = 1.3;
// Setting a ceiling costs about as much as this part of its classes in solves.
constexpr std::int64_t kClassesPerSolve = 16;
// A ceiling that is reached is raised so often in one solve; then its aggregate has no members.
constexpr int kRaises = 3;
// Aggregates are looked for where a hub holds so many classes, after this many times all classes were solved.
constexpr std::int32_t kCrowd = 32, kFewestHeld = 16;
constexpr std::size_t kWork = 4;
// A coefficient of an aggregate is summed anew after so many changes, or one for each class if that is more, and once
// subtraction has left this part of it.
constexpr std::size_t kSumChanges = 256;
constexpr double kStale = 0.1;

}  // namespace

// Before changed classes are presented: sets ceilings, and finds whose membership the changes end or begin.
void MaxMin::introduce() {
  review_ceilings();
  if (!aggregates_.started()) return;
  for (const auto k : changed_) {
    classes_[at(k)].listed = true;
    aggregates_.set_count(at(k), classes_[at(k)].count);
  }
  follow_aggregates();
}

void MaxMin::review_ceilings() {
  for (const auto a : lower_) set_ceiling(at(a), kAbove * level(at(a)));
  lower_.clear();
  if (!crowded_) return;
  crowded_ = false;
  work_ = 0;
  std::vector<std::size_t> held(sums_.size(), 0);
  std::vector<double> levels(sums_.size(), 0.0);
  for (std::size_t k = 0; k < network_.classes().size(); ++k) {
    const Class& flow = classes_[k];
    if (flow.holder < 0 || !resources_[at(flow.holder)].hub || aggregates_.of(k) < 0) continue;
    const std::size_t a = at(aggregates_.of(k));
    ++held[a];
    levels[a] = std::max(levels[a], flow.level);
  }
  for (std::size_t a = 0; a < sums_.size(); ++a) {
    if (held[a] < at(kFewestHeld) || aggregates_.ceiling(a) <= kFar * levels[a]) continue;
    if (!aggregates_.started()) {
      aggregates_.start();
      for (std::size_t k = 0; k < network_.classes().size(); ++k) aggregates_.set_count(k, classes_[k].count);
    }
    set_ceiling(a, kAbove * levels[a]);
  }
}

void MaxMin::set_ceiling(std::size_t a, double ceiling) {
  aggregates_.set_ceiling(a, ceiling);
  Class& sum = classes_[aggregate_class(a)];
  sum.bound = sum.bound_level = ceiling;
  sums_[a].ceiling_set = solves_;
  ++ceilings_set_;
}

// Those who become members, or are so no longer, have changed too.
void MaxMin::follow_aggregates() {
  aggregates_.decide();
  for (const auto k : aggregates_.switched()) {
    if (classes_[at(k)].listed) continue;
    classes_[at(k)].listed = true;
    changed_.push_back(k);
  }
}

// Brings a class up to date as a member of its aggregate; false if it is none, and then no longer one.
bool MaxMin::present_member(std::int32_t k) {
  Class& flow = classes_[at(k)];
  const bool joins = flow.count > 0.0 && aggregates_.joins(at(k));
  if (!joins && !flow.member) return false;
  if (!flow.member && flow.solved > 0.0) leave(k);
  add_to_sum(k, (joins ? flow.count : 0.0) - flow.solved);
  flow.solved = joins ? flow.count : 0.0;
  if (joins != flow.member) {
    sums_[at(aggregates_.of(at(k)))].members += joins ? 1 : -1;
    switched_.push_back(k);
  }
  flow.member = joins;
  return joins;
}

// So many more flows of a class belong to its aggregate. It takes more from now on, at the level that it has.
void MaxMin::add_to_sum(std::int32_t k, double flows) {
  const Class& flow = classes_[at(k)];
  const std::size_t a = at(aggregates_.of(at(k)));
  const Class& sum = classes_[aggregate_class(a)];
  Sum& known = sums_[a];
  std::size_t hub = 0;
  for (auto i = flow.first; i < flow.last; ++i) {
    const Load& load = loads_[at(i)];
    Resource& resource = resources_[at(load.resource)];
    if (!resource.hub) continue;
    const double more = flows * flow.weight * load.coefficient;
    double& total = loads_[at(sum.first) + hub].coefficient;
    double& peak = known.peaks[hub++];
    total += more;
    resource.left -= sum.solved * sum.rate * more;
    ++resource.changes;
    known.stale = known.stale || total < kStale * peak;
    peak = std::max(peak, total);
  }
  ++known.changes;
  if (known.listed) return;
  known.listed = true;
  changed_sums_.push_back(static_cast<std::int32_t>(a));
}

// Sums what the members of an aggregate take, from nothing.
void MaxMin::sum_anew(std::size_t a) {
  const Class& sum = classes_[aggregate_class(a)];
  for (auto i = sum.first; i < sum.last; ++i) {
    resources_[at(loads_[at(i)].resource)].left += sum.solved * sum.rate * loads_[at(i)].coefficient;
    loads_[at(i)].coefficient = 0.0;
  }
  sums_[a].peaks.assign(sums_[a].peaks.size(), 0.0);
  sums_[a].stale = false;
  for (const auto k : aggregates_.classes(a)) {
    if (classes_[at(k)].member) add_to_sum(k, classes_[at(k)].solved);
  }
  sums_[a].changes = 0;
}

// Brings the sums of changed members up to date among the users of hubs, and frees them.
void MaxMin::present_sums() {
  for (const auto a : changed_sums_) {
    const auto k = static_cast<std::int32_t>(aggregate_class(at(a)));
    Class& sum = classes_[at(k)];
    const Sum& known = sums_[at(a)];
    if (known.members == 0 && sum.count > 0.0) {
      leave(k);
      if (sum.free) std::erase(free_, k);
      sum.free = false;
      sum.count = 0.0;
    }
    if (known.stale || at(known.changes) > std::max(kSumChanges, aggregates_.classes(at(a)).size())) sum_anew(at(a));
    if (known.members > 0 && sum.count == 0.0) {
      sum.count = 1.0;
      enter(k);
    }
  }
  aggregates_.clear();
  for (const auto a : changed_sums_) {
    sums_[at(a)].listed = false;
    const Class& sum = classes_[aggregate_class(at(a))];
    if (sum.count > 0.0) release(static_cast<std::int32_t>(aggregate_class(at(a))));
    for (auto i = sum.first; i < sum.last; ++i) {
      if (resources_[at(loads_[at(i)].resource)].reached != solves_) reach(loads_[at(i)].resource);
    }
  }
  changed_sums_.clear();
}

// Raises the ceilings that levels have reached: what was assumed of their aggregates does not hold.
bool MaxMin::raise_ceilings(int round) {
  if (sums_.empty() || !aggregates_.started()) return false;
  reached_ceilings_.clear();
  for (const auto k : free_) {
    const auto classes = network_.classes().size();
    const std::int32_t a = at(k) < classes ? aggregates_.of(at(k)) : k - static_cast<std::int32_t>(classes);
    if (a < 0 || classes_[at(k)].level < aggregates_.ceiling(at(a))) continue;
    if (std::ranges::find(reached_ceilings_, a) == reached_ceilings_.end()) reached_ceilings_.push_back(a);
  }
  if (reached_ceilings_.empty()) return false;
  for (const auto a : reached_ceilings_) {
    set_ceiling(at(a), round < kRaises ? kAbove * aggregates_.ceiling(at(a)) : kInfinity);
  }
  follow_aggregates();
  for (const auto k : changed_) present(k);
  free_changed();
  begin_again();
  return true;
}

// After a solve: finds the ceilings that are too far up, and whether a hub holds so many classes that it is worth while
// to look for aggregates. Both are done in the next solve: a network that is solved once pays nothing for them.
void MaxMin::plan_ceilings() {
  if (sums_.empty()) return;
  work_ += free_.size();
  if (work_ >= kWork * network_.classes().size()) {
    crowded_ = std::ranges::any_of(
        reached_, [&](auto r) { return resources_[at(r)].hub && resources_[at(r)].holding >= kCrowd; });
  }
  for (const auto k : free_) {
    if (at(k) < network_.classes().size()) continue;
    const std::size_t a = at(k) - network_.classes().size();
    const auto patience = static_cast<std::int64_t>(aggregates_.classes(a).size()) / kClassesPerSolve;
    if (aggregates_.ceiling(a) <= kFar * classes_[at(k)].level || solves_ - sums_[a].ceiling_set < patience) continue;
    lower_.push_back(static_cast<std::int32_t>(a));
  }
}

}  // namespace lanewise::sim
