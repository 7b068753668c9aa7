// Which classes of flows can be solved as one.
// A hub is a resource that many classes use (a fabric, a storage port). Classes that use the same hubs form an
// aggregate. Let L be the level (rate / weight) of those of them that nothing else bounds; a hub that they share gives
// it to them, and by the bottleneck condition nobody on that hub is above it: so no class of the aggregate has a level
// above L. While L <= ceiling, a resource q other than a hub is slack, whatever the rates are, if
//   sum over the classes j with flows on q of  count_j * weight_j * coefficient_jq * ceiling(aggregate of j)  <=  C_q.
// A class of which all resources but its hubs are slack, and whose cap is not below the ceiling, is a member: nothing
// but hubs can bound it. All members have the level L, so together they are one class of weight 1 whose coefficient at
// a hub is the sum of theirs. What is not a member is solved by itself. Nothing here depends on the rates but through
// the ceilings, so a change of one count costs what the loads of that class are.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "sim/network.hpp"

namespace lanewise::sim {

class Aggregates {
 public:
  // `ignored` resources can never bind. Finds hubs and aggregates; the network must outlive it.
  Aggregates(const Network& network, const std::vector<bool>& ignored);

  std::size_t size() const noexcept { return groups_.size(); }
  // The aggregate that a class may be a member of; -1: none.
  std::int32_t of(std::size_t flow_class) const { return groups_.empty() ? -1 : aggregate_[flow_class]; }
  const std::vector<std::int32_t>& hubs(std::size_t aggregate) const { return groups_[aggregate].hubs; }
  const std::vector<std::int32_t>& classes(std::size_t aggregate) const { return groups_[aggregate].classes; }
  double ceiling(std::size_t aggregate) const { return groups_[aggregate].ceiling; }

  // Nothing below may be called before start(). It costs what the network is; until then there are no members.
  bool started() const noexcept { return !demands_.empty(); }
  void start();
  void set_count(std::size_t flow_class, double count);
  // Infinity: no class is a member.
  void set_ceiling(std::size_t aggregate, double ceiling);
  // After changes of counts and ceilings: finds switched().
  void decide();
  // Classes with flows that became members, or are so no longer, since clear(); may name others, and some twice.
  std::span<const std::int32_t> switched() const noexcept { return switched_; }
  void clear() { switched_.clear(); }

  // Whether a class, if it has flows, is a member.
  bool joins(std::size_t flow_class) const { return started() && demands_[flow_class].bounds == 0; }

 private:
  struct Group {
    std::vector<std::int32_t> hubs;  // ascending
    std::vector<std::int32_t> classes;
    double ceiling = std::numeric_limits<double>::infinity();
  };
  struct Demand {  // of one class
    std::int32_t first = 0;
    std::int32_t last = 0;    // its loads of resources that are no hubs: loads_[first .. last)
    std::int32_t bounds = 0;  // resources that are not slack, and 1 if barred: what may bound it besides hubs
    bool barred = true;       // it has no ceiling, or its cap is below
    bool unbounded = false;   // it has flows and no ceiling
    double count = 0.0;
    double pull = 0.0;  // count * weight * ceiling
  };
  struct Part {          // a load of one resource by one class
    std::int32_t index;  // of the resource, or of the class
    double coefficient;
  };
  struct Resource {
    double limit = 0.0;    // what `assumed` may be while the resource is slack
    double assumed = 0.0;  // sum of pull * coefficient
    std::int32_t unbounded = 0;
    std::int32_t changes = 0;  // of `assumed` since it was last summed
    std::int32_t first = 0;    // the classes that use it: users_[first .. last); none for a hub
    std::int32_t last = 0;
    bool slack = false;
    bool listed = false;  // in changed_
  };

  void find_groups(const std::vector<bool>& ignored);
  void assume(std::size_t flow_class);
  void bar(std::size_t flow_class);
  void count_bound(std::size_t flow_class, int change);
  bool is_slack(Resource& resource);

  const Network& network_;
  std::vector<bool> ignored_;
  std::vector<bool> hub_;  // empty without aggregates, as is aggregate_
  std::vector<std::int32_t> aggregate_;
  std::vector<Group> groups_;
  std::vector<Demand> demands_;
  std::vector<Resource> resources_;
  std::vector<Part> loads_;
  std::vector<Part> users_;
  std::vector<std::int32_t> changed_, switched_;
};

}  // namespace lanewise::sim
