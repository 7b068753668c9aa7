// Weighted max-min rates of flow classes by progressive filling.
// Source of the algorithm: Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2, here with weights,
// caps, coefficients and classes of many identical flows.
#pragma once

#include <span>

#include "sim/network.hpp"

namespace lanewise::sim {

inline constexpr std::int32_t kOwnCap = -1;  // a limit: the class runs at its cap
inline constexpr std::int32_t kIdle = -2;    // a limit in Shares: the class has no flow

// Solves one component for any number of flows per class. Indices are local: places in the component's lists, so
// classes come by ascending cap level.
class MaxMin {
 public:
  MaxMin(const Network& network, const Component& component);

  std::size_t classes() const noexcept { return weight_.size(); }

  // Writes the rate of one flow of each class in `active`, and what froze it: a local resource or kOwnCap.
  // `active` ascends and names the classes that have flows; `counts` (of all classes) are whole numbers. The cost
  // depends on the active classes and their resources alone: not on idle ones, nor on how many flows there are.
  void solve(std::span<const std::int32_t> active, std::span<const double> counts, std::span<double> rates,
             std::span<std::int32_t> limits);

 private:
  struct Load {
    std::int32_t resource;
    double coefficient;
    double weighted;  // coefficient * weight
  };
  // A resource while filling: its rising flows meet its limit at level `left / demand`.
  struct Filling {
    double left;           // capacity not taken by frozen classes
    double demand;         // sum of count * coefficient * weight of the rising classes
    double resum;          // at or below this, `demand` has lost digits to subtraction and is summed again
    std::int32_t rising;   // how many classes still rise
    std::int32_t resource;
  };

  void open(std::span<const std::int32_t> active, std::span<const double> counts);
  void freeze(std::size_t flow_class, double rate, std::size_t full);
  void sum_demand(Filling& filling);
  std::size_t next_rising(std::span<const std::int32_t> active);
  double lowest_level() const;
  std::size_t first_at(double level) const;

  std::vector<double> capacity_;
  std::vector<double> weight_;
  std::vector<double> cap_;
  std::vector<double> cap_level_;         // cap / weight, ascending
  std::vector<std::int32_t> load_start_;    // of class k: loads_[load_start_[k] .. load_start_[k+1])
  std::vector<Load> loads_;
  std::vector<std::int32_t> user_start_;  // of resource r: users_[user_start_[r] .. user_start_[r+1])
  std::vector<std::int32_t> users_;
  std::vector<double> user_weighted_;      // beside users_: coefficient * weight

  // Scratch of one solve. Resources in use are packed into slots, so that idle ones cost nothing.
  std::vector<std::int32_t> slot_;  // of each resource, -1 when idle
  std::vector<Filling> filling_;    // of each slot
  std::vector<double> level_;       // of each slot; infinity when nothing rises on it
  std::vector<double> count_;       // of each class while it rises, else 0
  std::size_t slots_ = 0;
  std::size_t rising_ = 0;
  std::size_t cursor_ = 0;  // in the active classes: all before it are frozen
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
