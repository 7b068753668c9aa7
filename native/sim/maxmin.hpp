// Weighted max-min rates of flow classes by progressive filling.
// Source of the algorithm: Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2, here with weights,
// caps, coefficients and classes of many identical flows.
#pragma once

#include "sim/network.hpp"

namespace lanewise::sim {

inline constexpr std::int32_t kOwnCap = -1;  // a limit: the class runs at its cap
inline constexpr std::int32_t kIdle = -2;    // a limit in Shares: the class has no flow

// Solves one component. Set the number of flows of classes, solve, read rates and limits; then change some numbers and
// solve again. Indices are local: places in the component's lists, so classes come by ascending cap level.
class MaxMin {
 public:
  MaxMin(const Network& network, const Component& component);

  // How many flows a class has: a whole number >= 0. The cost depends on the class's own resources alone.
  void set_count(std::size_t flow_class, double count);
  double count(std::size_t flow_class) const { return count_[flow_class]; }
  // Classes that have flows, ascending.
  const std::vector<std::int32_t>& active() const noexcept { return active_; }

  // Finds the rates for the present counts. The cost depends on the active classes and their resources: not on idle
  // ones, nor on how many flows there are. No allocation.
  void solve();
  // The rate of one flow, and what froze it: a local resource or kOwnCap. Of active classes only, as last solved.
  double rate(std::size_t flow_class) const { return rate_[flow_class]; }
  std::int32_t limit(std::size_t flow_class) const { return limit_[flow_class]; }

 private:
  struct Load {
    std::int32_t resource;
    double coefficient;
    double weighted;  // coefficient * weight
  };
  // The sum of count * coefficient * weight over classes on a resource, kept up to date by additions: it is summed
  // anew before these have cost it digits, that is when it is down to `resum` or `changes` are many.
  struct Demand {
    double sum = 0.0;
    double resum = 0.0;
    std::int32_t classes = 0;
    std::int32_t changes = 0;
  };
  // A resource while rates rise: its flows meet its limit at level `left / demand.sum`.
  struct Filling {
    double left;  // capacity not taken by frozen classes
    Demand demand;
  };

  void freeze(std::size_t flow_class, double rate, std::size_t full);
  void sum(std::size_t resource, const std::vector<double>& counts, Demand& demand) const;
  std::size_t next_rising();
  double lowest_level();

  std::vector<double> capacity_;
  std::vector<double> weight_;
  std::vector<double> cap_;
  std::vector<double> cap_level_;         // cap / weight, ascending
  std::vector<std::int32_t> load_start_;  // of class k: loads_[load_start_[k] .. load_start_[k+1])
  std::vector<Load> loads_;
  std::vector<std::int32_t> user_start_;  // of resource r: users_[user_start_[r] .. user_start_[r+1])
  std::vector<std::int32_t> users_;
  std::vector<double> user_weighted_;  // beside users_: coefficient * weight

  std::vector<double> count_;
  std::vector<std::int32_t> active_;
  std::vector<Demand> demand_;      // of each resource
  std::vector<std::int32_t> used_;  // resources with active classes, ascending
  std::vector<double> rate_;
  std::vector<std::int32_t> limit_;

  // Scratch of one solve.
  std::vector<double> rising_;      // of each class: its count while it rises, else 0
  std::vector<Filling> filling_;    // of each resource
  std::vector<double> level_;       // of each resource; infinity once nothing rises on it
  std::vector<std::int32_t> live_;  // resources on which something may rise, ascending
  std::size_t live_count_ = 0;
  std::size_t rising_count_ = 0;
  std::size_t cursor_ = 0;  // in active_: all before it are frozen
};

// Rates, limits and use of a whole network.
struct Shares {
  std::vector<double> rates;         // of one flow of each class
  std::vector<std::int32_t> limits;  // resource index, kOwnCap or kIdle
  std::vector<double> use;           // load / capacity of each resource
};

// Solves all components once; throws BadInput when counts are not whole numbers >= 0 or their number is wrong.
Shares share(const Network& network, const std::vector<double>& counts);

}  // namespace lanewise::sim
