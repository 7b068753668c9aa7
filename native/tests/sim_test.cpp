// The solver against the condition that only max-min rates meet, and the flow engine against closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "sim/flowsim.hpp"
#include "sim/maxmin.hpp"

namespace lanewise::sim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNear = 1e-9;

Network random_network(std::mt19937_64& bits) {
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(bits); };
  const auto whole = [&](int low, int high) { return std::uniform_int_distribution(low, high)(bits); };
  std::vector<double> capacities(static_cast<std::size_t>(whole(1, 8)));
  for (double& capacity : capacities) capacity = uniform(1.0, 100.0);
  std::vector<FlowClass> classes(static_cast<std::size_t>(whole(1, 12)));
  for (FlowClass& flow : classes) {
    for (int use = whole(1, 4); use > 0; --use) {
      flow.uses.push_back({whole(0, static_cast<int>(capacities.size()) - 1), uniform(0.1, 2.0)});
    }
    flow.weight = uniform(0.5, 3.0);
    flow.cap = whole(0, 3) == 0 ? uniform(0.5, 20.0) : kInfinity;
  }
  return Network(capacities, classes);
}

double load_of(const Network& network, const std::vector<double>& counts, MaxMin& solver, std::size_t resource) {
  double load = 0.0;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    for (const Use& use : network.classes()[k].uses) {
      if (use.resource == static_cast<std::int32_t>(resource)) load += counts[k] * use.coefficient * solver.rate(k);
    }
  }
  return load;
}

// Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2: rates are max-min exactly if no resource is overloaded
// and every flow is at its cap, or has a full resource on which no other has a higher level (rate / weight).
void expect_max_min(const Network& network, const std::vector<double>& counts, MaxMin& solver) {
  const auto& capacities = network.capacities();
  std::vector<double> loads, tops(capacities.size(), 0.0);
  for (std::size_t r = 0; r < capacities.size(); ++r) {
    loads.push_back(load_of(network, counts, solver, r));
    EXPECT_LE(loads[r], capacities[r] * (1.0 + kNear));
  }
  for (std::size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] == 0.0) continue;
    const double level = solver.rate(k) / network.classes()[k].weight;
    for (const Use& use : network.classes()[k].uses) {
      double& top = tops[static_cast<std::size_t>(use.resource)];
      top = std::max(top, level);
    }
  }
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const FlowClass& flow = network.classes()[k];
    if (counts[k] == 0.0 || solver.rate(k) >= flow.cap * (1.0 - kNear)) continue;
    const double level = solver.rate(k) / flow.weight;
    EXPECT_TRUE(std::ranges::any_of(flow.uses,
                                    [&](const Use& use) {
                                      const auto r = static_cast<std::size_t>(use.resource);
                                      return loads[r] >= capacities[r] * (1.0 - kNear) &&
                                             level >= tops[r] * (1.0 - kNear);
                                    }))
        << "class " << k << " has no bottleneck";
  }
}

TEST(MaxMin, EveryFlowHasABottleneckHoweverCountsChange) {
  std::mt19937_64 bits(7);
  for (int round = 0; round < 300; ++round) {
    const Network network = random_network(bits);
    MaxMin solver(network);
    std::vector<double> counts(network.classes().size(), 0.0);
    for (int change = 0; change < 8; ++change) {
      const std::size_t k = bits() % counts.size();
      counts[k] = static_cast<double>(bits() % 4);
      solver.set_count(k, counts[k]);
      solver.solve();
      expect_max_min(network, counts, solver);
    }
  }
}

TEST(MaxMin, TwoFlowsShareAsTheirWeights) {
  const Network network({30.0}, {{{{0, 1.0}}, 1.0, kInfinity}, {{{0, 1.0}}, 2.0, kInfinity}});
  MaxMin solver(network);
  solver.set_count(0, 1.0);
  solver.set_count(1, 1.0);
  solver.solve();
  EXPECT_DOUBLE_EQ(solver.rate(0), 10.0);
  EXPECT_DOUBLE_EQ(solver.rate(1), 20.0);
  EXPECT_EQ(solver.limit(0), 0);
}

TEST(Network, RefusesWhatHasNoMeaning) {
  EXPECT_THROW(Network({-1.0}, {}), BadInput);
  EXPECT_THROW(Network({1.0}, {{{{1, 1.0}}, 1.0, kInfinity}}), BadInput);
  EXPECT_THROW(Network({1.0}, {{{}, 1.0, kInfinity}}), BadInput);  // nothing bounds it
}

TEST(FlowEngine, EqualTransfersEndTogetherAndLaterOnesLater) {
  const auto network =
      std::make_shared<const Network>(std::vector<double>{10.0}, std::vector<FlowClass>{{{{0, 1.0}}, 1.0, kInfinity}});
  FlowEngine engine(network);
  engine.add(0, 50.0, 1);
  engine.add(0, 50.0, 2);
  engine.add(0, 80.0, 3);
  EXPECT_DOUBLE_EQ(engine.next_event_time(), 15.0);  // three at 10/3 each
  const auto first = engine.advance();
  EXPECT_EQ((std::vector<std::int64_t>(first.begin(), first.end())), (std::vector<std::int64_t>{1, 2}));
  EXPECT_DOUBLE_EQ(engine.next_event_time(), 18.0);  // 30 B left, alone
  EXPECT_EQ(engine.advance().front(), 3);
  EXPECT_EQ(engine.active(), 0U);
  EXPECT_DOUBLE_EQ(engine.moved(0), 180.0);
}

TEST(FlowEngine, MovesAllBytesOfRandomTransfers) {
  std::mt19937_64 bits(11);
  for (int round = 0; round < 50; ++round) {
    const auto network = std::make_shared<const Network>(random_network(bits));
    FlowEngine engine(network);
    std::vector<double> bytes(network->classes().size(), 0.0);
    std::size_t ends = 0;
    const std::size_t begun = 40;
    for (std::size_t i = 0; i < begun; ++i) {
      const std::size_t k = bits() % bytes.size();
      const double size = static_cast<double>(bits() % 1000 + 1);
      bytes[k] += size;
      engine.add(static_cast<std::int32_t>(k), size, static_cast<std::int64_t>(i));
      if (i % 3 == 0) ends += engine.advance().size();
    }
    for (double before = engine.now(); engine.active() > 0; before = engine.now()) {
      ends += engine.advance().size();
      EXPECT_GE(engine.now(), before);
    }
    EXPECT_EQ(ends, begun);
    for (std::size_t k = 0; k < bytes.size(); ++k) {
      EXPECT_NEAR(engine.moved(static_cast<std::int32_t>(k)), bytes[k], 1e-6 * (1.0 + bytes[k]));
    }
  }
}

}  // namespace
}  // namespace lanewise::sim
