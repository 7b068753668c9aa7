// Rules by which queries go to nodes, in simulated time: of each rule the largest rate at which p99 is within a bound,
// as a share of the nodes' capacity. A line of JSON for each case and rule.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/simulated_nodes.hpp"

namespace {

using namespace lanewise::dispatch;

constexpr std::uint64_t kQueries = 40'000;
constexpr int kSteps = 10;  // of the bisection

struct Case {
  const char* name;
  std::vector<SimulatedNode> nodes;
  std::vector<double> intervals;  // between two answers of a full node
  double bound;

  double capacity() const {
    double sum = 0;
    for (const double interval : intervals) sum += 1 / interval;
    return sum;
  }
};

// Of a node: exponentially weighted means of the round trip and of the queries in flight.
struct Means {
  double time = 0, in_flight = 0;

  void add(const RoundTrip& trip) {
    const double weight = time == 0 ? 1 : CompletionTime::kWeight;
    time += weight * (static_cast<double>(trip.time) - time);
    in_flight += weight * (1 + static_cast<double>(trip.ahead) - in_flight);
  }
};

enum class Rule { kFewest, kPeakEwma, kMeansAlone, kOurs, kInformed };
constexpr std::array<std::pair<Rule, const char*>, 5> kRules{{
    {Rule::kFewest, "fewest outstanding"},
    {Rule::kPeakEwma, "(n + 1) * mean round trip"},
    {Rule::kMeansAlone, "(n + 1) * mean round trip / mean in flight"},
    {Rule::kOurs, "as Lanewise"},
    {Rule::kInformed, "shortest delay, speeds known"},
}};

Simulated by_means(const Case& of, double rate, bool of_flight) {
  std::vector<Means> means(of.nodes.size());
  const auto cost = [&](const Candidate& each) {
    const Means& node = means[each.node];
    const double places = static_cast<double>(each.outstanding + 1);
    return places * node.time / (of_flight && node.in_flight > 0 ? node.in_flight : 1);
  };
  return simulate(
      of.nodes, rate, kQueries,
      [&](std::span<const Candidate> candidates) {
        return static_cast<std::size_t>(std::ranges::min_element(candidates, {}, cost) - candidates.begin());
      },
      [&](std::size_t node, const RoundTrip& trip) { means[node].add(trip); });
}

Simulated run(const Case& of, Rule rule, double rate) {
  switch (rule) {
    case Rule::kFewest:
      return informed(of.nodes, rate, kQueries, std::vector<double>(of.nodes.size(), 1.0));
    case Rule::kPeakEwma:
      return by_means(of, rate, false);
    case Rule::kMeansAlone:
      return by_means(of, rate, true);
    case Rule::kOurs:
      return balanced(of.nodes, rate, kQueries);
    case Rule::kInformed:
      break;
  }
  return informed(of.nodes, rate, kQueries, of.intervals);
}

double peak(const Case& of, Rule rule) {
  double valid = 0, invalid = 1.1 * of.capacity();
  for (int step = 0; step < kSteps; ++step) {
    const double rate = (valid + invalid) / 2;
    (run(of, rule, rate).p99 <= of.bound ? valid : invalid) = rate;
  }
  return valid / of.capacity();
}

}  // namespace

int main() {
  const std::vector<Case> cases{
      {"1 : 1, constant", {{constant(1)}, {constant(1)}}, {1, 1}, 5},
      {"1 : 1, exponential", {{exponential(1)}, {exponential(1)}}, {1, 1}, 10},
      {"1 : 1, eight at once, constant", {{constant(8), 8}, {constant(8), 8}}, {1, 1}, 12},
      {"1 : 1, eight at once, exponential", {{exponential(8), 8}, {exponential(8), 8}}, {1, 1}, 40},
      {"4 : 1, constant", {{constant(1)}, {constant(4)}}, {1, 4}, 20},
      {"4 : 1, exponential", {{exponential(1)}, {exponential(4)}}, {1, 4}, 20},
      {"4 : 1, eight and two at once, constant", {{constant(8), 8}, {constant(8), 2}}, {1, 4}, 16},
      {"4 : 2 : 1 : 1, exponential",
       {{exponential(1)}, {exponential(2)}, {exponential(4)}, {exponential(4)}},
       {1, 2, 4, 4},
       20},
      {"16 : 1, exponential", {{exponential(1)}, {exponential(16)}}, {1, 16}, 20},
  };
  for (const Case& each : cases) {
    for (const auto& [rule, name] : kRules) {
      const double share = peak(each, rule);
      const Simulated half = run(each, rule, 0.5 * each.capacity());
      std::printf(
          R"({"case": "%s", "bound": %g, "rule": "%s", "peak": %.4f, "p99_at_half": %.4g, "share_at_half": %.4f})"
          "\n",
          each.name, each.bound, name, share, half.p99, half.shares[0]);
    }
  }
}
