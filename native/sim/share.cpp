// A network solved once, with all that a prediction wants to know.
#include <cmath>
#include <string>

#include "sim/maxmin.hpp"
#include "sim/numbers.hpp"

namespace lanewise::sim {
namespace {

// Flows per class: beyond 2^53 a double no longer counts.
constexpr double kMostFlows = 9007199254740992.0;

}  // namespace

Shares share(const Network& network, const std::vector<double>& counts) {
  const std::size_t classes = network.classes().size();
  if (counts.size() != classes) {
    throw BadInput(std::to_string(counts.size()) + " counts for " + std::to_string(classes) + " flow classes",
                   "give one count for each class");
  }
  MaxMin solver(network);
  for (std::size_t k = 0; k < classes; ++k) {
    if (!(counts[k] >= 0.0 && counts[k] <= kMostFlows && counts[k] == std::floor(counts[k]))) {
      throw BadInput("flow class " + std::to_string(k) + " has a count that is not a whole number of flows",
                     "counts are whole numbers from 0 to 2^53");
    }
    solver.set_count(k, counts[k]);
  }
  solver.solve();
  Shares out{std::vector<double>(classes), std::vector<std::int32_t>(classes, kIdle),
             std::vector<double>(network.capacities().size())};
  for (std::size_t k = 0; k < classes; ++k) {
    if (counts[k] == 0.0) continue;
    out.rates[k] = solver.rate(k);
    out.limits[k] = solver.limit(k);
    for (const Use& use : network.classes()[k].uses) {
      out.use[at(use.resource)] += counts[k] * use.coefficient * out.rates[k];
    }
  }
  for (std::size_t r = 0; r < out.use.size(); ++r) {
    out.use[r] /= network.capacities()[r];
    if (out.use[r] > 1.0 && out.use[r] < 1.0 + 1e-9) out.use[r] = 1.0;  // rounding, not an overload
  }
  return out;
}

}  // namespace lanewise::sim
