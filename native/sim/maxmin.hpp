// Weighted max-min rates of flow classes, kept up to date while the numbers of flows change.
// A set of classes is solved by progressive filling: Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2,
// here with weights, caps, coefficients and classes of many identical flows. Its bottleneck condition, which only the
// max-min rates meet, says how small that set may be: every flow runs at its own bound, or uses a full resource on
// which nobody has a higher level (rate / weight).
#pragma once

#include <span>

#include "sim/aggregates.hpp"
#include "sim/heap.hpp"
#include "sim/network.hpp"
#include "sim/numbers.hpp"

namespace lanewise::sim {

inline constexpr std::int32_t kOwnCap = -1;  // a limit: the class runs at its cap
inline constexpr std::int32_t kIdle = -2;    // a limit in Shares: the class has no flow
// Levels this close are one level, a rate this close to a cap is at it: what is solved anew must not hang on rounding.
inline constexpr double kTie = 1.0 + 1e-12;

// Set the number of flows of classes, solve, read rates and limits; then change some numbers and solve again.
// One solve:
// 1. release: the changed classes are free, and so are the classes that the resources they use hold (find_free).
// 2. restart: every free class begins anew at rate zero; the other classes keep their rates.
// 3. fill: one common level (rate / weight) rises for all free classes. A class freezes where it meets its own bound,
//    or where a resource that it uses is full: that resource then holds it.
// 4. widen: a class that is not free, but above the level of a resource filled in 3, is free too: again from 2.
// Once a hub holds many classes, the members of an aggregate (aggregates.hpp) are left out, and one class of weight 1
// stands for them in all of this: its coefficients are the sums of theirs, and its bound is the aggregate's ceiling. If
// it, or a class of its aggregate, gets as far as that, the ceiling is raised and all is solved again. Such a class of
// aggregate a has the index (number of classes) + a.
class MaxMin {
 public:
  // The network must outlive it.
  explicit MaxMin(const Network& network);

  // How many flows a class has: a whole number >= 0. Costs nothing before solve().
  void set_count(std::size_t flow_class, double count);

  // Finds the rates for the present counts and returns the classes, and the aggregates as (number of classes) + a, that
  // it solved anew: all others that have flows kept their rates. A member's rate changes as its aggregate's does. Costs
  // what these classes and their resources are, not what the network is. Valid until the next call.
  std::span<const std::int32_t> solve();
  // The rate of one flow as last solved; 0 where there is none.
  double rate(std::size_t flow_class) const {
    const Class& flow = classes_[flow_class];
    return flow.member ? flow.weight * level(at(aggregates_.of(flow_class))) : flow.rate;
  }
  // The classes that became members of their aggregates in the last solve, or are so no longer; some may do both.
  std::span<const std::int32_t> switched() const noexcept { return switched_; }
  // The aggregate that the class is a member of; -1: none.
  std::int32_t aggregate(std::size_t flow_class) const {
    return classes_[flow_class].member ? aggregates_.of(flow_class) : -1;
  }
  // The level of the members of an aggregate: each flow runs at its weight times this.
  double level(std::size_t aggregate) const { return classes_[aggregate_class(aggregate)].level; }
  const Aggregates& aggregates() const noexcept { return aggregates_; }
  // How often ceilings were set since the beginning: at first, raised or lowered.
  std::int64_t ceilings_set() const noexcept { return ceilings_set_; }
  // What bounds it: a resource or kOwnCap. Of limits met at once the cap is named, else the resource of lowest index.
  std::int32_t limit(std::size_t flow_class);

 private:
  struct Class {  // a flow class: what it uses, and how it was last solved
    double weight;
    double cap;
    double most;         // what all its flows together get where nobody else is
    std::int32_t first;  // its loads of resources that can bind: loads_[first .. last)
    std::int32_t last;
    double count = 0.0;
    double bound = 0.0;  // the rate of a flow where nobody else is
    double bound_level = 0.0;
    double solved = 0.0;  // the count for which `rate` holds; of a member: that its aggregate has
    double rate = 0.0;
    double level = 0.0;             // rate / weight
    std::int32_t holder = kOwnCap;  // the resource that holds it; kOwnCap: its own bound does
    bool listed = false;            // in changed_
    bool free = false;              // in free_: being solved
    bool rising = false;            // and not yet frozen
    bool member = false;            // of its aggregate: not among the users of resources, but for `solved`
  };
  struct Load {  // of one resource by one class
    std::int32_t resource;
    std::int32_t user;  // its place in users_ while the class has flows
    double coefficient;
  };
  struct Taker {  // of a dominated resource: a class, with flows or without
    std::int32_t flow_class;
    double coefficient;
  };
  struct User {  // of a resource: a class that has flows, and which of its loads this is
    std::int32_t flow_class;
    std::int32_t load;
  };
  struct alignas(64) Resource {  // what a solve walks over is one cache line
    double left;                 // what the rates leave of it
    double capacity;             // here, so that no compiler makes pairs of `left` and `demand`: that stalls
    double demand = 0.0;         // of rising users: sum of count * weight * coefficient
    double pressure = 0.0;       // of free users: what they would take at their bounds
    std::int64_t reached = 0;    // the last solve that freed users of it
    std::int32_t first = 0;      // its users: users_[first .. first + users), those that have flows
    std::int32_t users = 0;
    std::int32_t holding = 0;  // how many of them it holds
    std::int32_t rising = 0;   // how many of them rise
    std::int32_t changes = 0;  // of `left` since it was last summed
    bool shared = false;       // free users with others
    bool bounds = false;       // holds free users
    bool hub = false;
  };
  struct Level {              // of a resource: levels that are read less often than what a solve walks over
    double resum = 0.0;       // the demand of a resource is summed anew below this
    double held_level = 0.0;  // of those it holds
    double top = 0.0;         // of all users
    double spare = 0.0;       // the share of the capacity that is left
    std::int64_t found = 0;   // the solve for which these two hold
  };
  struct Sum {  // of the members of an aggregate
    std::int32_t members = 0;
    std::int32_t changes = 0;      // of its coefficients since they were last summed
    std::int64_t ceiling_set = 0;  // the last solve that set its ceiling
    std::vector<double> peaks;     // of its coefficients since then
    bool stale = false;            // a coefficient is far below its peak
    bool listed = false;           // in changed_sums_
  };
  struct Mark {  // on the way of the common level up: a class meets its bound, or a resource is full
    double level;
    std::int32_t index;
    bool before(const Mark& other) const noexcept {
      return (level < other.level) | ((level == other.level) & (index < other.index));
    }
  };

  std::size_t aggregate_class(std::size_t aggregate) const { return network_.classes().size() + aggregate; }

  static std::vector<std::vector<Taker>> find_dominated(const Network& network);
  std::vector<bool> dominated() const;
  void add_aggregates();
  bool find_free();
  void present(std::int32_t flow_class);
  void free_changed();
  void begin_again();
  // Of aggregates: in members.cpp.
  void review_ceilings();
  void introduce();
  void set_ceiling(std::size_t aggregate, double ceiling);
  void follow_aggregates();
  bool present_member(std::int32_t flow_class);
  void add_to_sum(std::int32_t flow_class, double change);
  void sum_anew(std::size_t aggregate);
  void present_sums();
  bool raise_ceilings(int round);
  void plan_ceilings();
  void enter(std::int32_t flow_class);
  void leave(std::int32_t flow_class);
  void release(std::int32_t flow_class);
  void reach(std::int32_t resource);
  void restart(std::int32_t flow_class);
  void open();
  void fill();
  void freeze(Class& flow, double rate, double level, std::int32_t holder);
  void freeze_users(std::int32_t resource, double level);
  double lowest_level();
  std::int32_t pop_bound();
  double level_of(std::int32_t resource);
  bool widen(int round);
  double taken(const Resource& resource) const;
  double level_of_class(std::size_t flow_class) const {
    const Class& flow = classes_[flow_class];
    return flow.member ? level(at(aggregates_.of(flow_class))) : flow.level;
  }
  double shortfall(std::int32_t resource, double level);
  void look_at(std::int32_t resource);

  const Network& network_;
  std::vector<std::vector<Taker>> dominated_;  // of each resource that another one always binds before: who uses it
  Aggregates aggregates_;
  std::vector<Class> classes_;  // then aggregates
  std::vector<Load> loads_;
  std::vector<Resource> resources_;
  std::vector<Level> levels_;  // by the index of resources_
  std::vector<User> users_;
  std::vector<std::int32_t> changed_;
  std::int64_t solves_ = 0;

  std::vector<Sum> sums_;                       // by the index of aggregates_
  std::vector<std::int32_t> changed_sums_;      // aggregates whose members changed
  std::vector<std::int32_t> lower_;             // aggregates whose ceilings are to be lowered
  std::vector<std::int32_t> reached_ceilings_;  // of one solve: aggregates
  std::vector<std::int32_t> switched_;
  std::size_t work_ = 0;  // classes solved since aggregates were last looked for
  bool crowded_ = false;  // a hub holds many classes
  std::int64_t ceilings_set_ = 0;

  // Of one solve.
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> reached_;
  std::size_t rising_ = 0;
  MinHeap<Mark> fills_;       // its levels may lag behind
  MinHeap<Mark> bounds_;      // ordered at the first use; may name classes that rise no more
  double least_bound_ = 0.0;  // of bounds_
  bool ordered_ = false;      // bounds_
};

// Rates, limits and use of a whole network.
struct Shares {
  std::vector<double> rates;         // of one flow of each class
  std::vector<std::int32_t> limits;  // resource index, kOwnCap or kIdle
  std::vector<double> use;           // load / capacity of each resource
};

// Solves a network once; throws BadInput when counts are not whole numbers >= 0 or their number is wrong.
Shares share(const Network& network, const std::vector<double>& counts);

}  // namespace lanewise::sim
