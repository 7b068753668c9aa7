// The solver against the condition that only max-min rates meet, and the flow engine against closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
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

// Links of classes' own, some shared by two or three; four ports; one fabric: from ample to far too small.
Network hub_network(std::mt19937_64& bits) {
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(bits); };
  const auto whole = [&](int low, int high) { return std::uniform_int_distribution(low, high)(bits); };
  const int links = whole(20, 60), classes = 3 * links;
  std::vector<double> capacities;
  for (int r = 0; r < links; ++r) capacities.push_back(uniform(5.0, 50.0));
  for (int port = 0; port < 4; ++port) capacities.push_back(uniform(5.0, 200.0));
  capacities.push_back(uniform(1.0, 20.0) * links);
  const bool alike = whole(0, 1) == 0, capped = whole(0, 1) == 0;
  std::vector<FlowClass> flows(static_cast<std::size_t>(classes));
  for (int k = 0; k < classes; ++k) {
    FlowClass& flow = flows[static_cast<std::size_t>(k)];
    const auto some = [&] { return alike ? 1.0 : uniform(0.2, 3.0); };
    flow.uses = {{k % links, some()}, {links + 4, some()}};
    if (k < links) flow.uses.push_back({links + k % 2, some()});
    if (k >= links) flow.uses.push_back({(7 * k + 1) % links, some()});
    if (whole(0, 9) == 0) flow.uses.pop_back();
    flow.weight = some();
    flow.cap = capped && whole(0, 5) == 0 ? uniform(0.5, 20.0) : kInfinity;
  }
  return Network(capacities, flows);
}

TEST(MaxMin, AggregatesGiveTheRatesOfASolutionFromScratch) {
  std::mt19937_64 bits(23);
  std::size_t members = 0, apart = 0, joins = 0, leaves = 0;
  std::int64_t ceilings = 0;
  for (int round = 0; round < 20; ++round) {
    const Network network = hub_network(bits);
    MaxMin solver(network);
    std::vector<double> counts(network.classes().size(), 0.0);
    for (std::size_t change = 0; change < 8 * counts.size(); ++change) {
      // Many flows, then few, then many; sometimes two classes change at once.
      const std::uint64_t most = change / counts.size() % 4 == 2 ? 2 : 9;
      for (std::size_t both = bits() % 8 == 0 ? 2 : 1; both > 0; --both) {
        const std::size_t k = bits() % counts.size();
        counts[k] = static_cast<double>(bits() % most);
        solver.set_count(k, counts[k]);
      }
      solver.solve();
      for (const auto k : solver.switched()) ++(solver.aggregate(static_cast<std::size_t>(k)) < 0 ? leaves : joins);
      if (change % 5 != 0) continue;
      MaxMin anew(network);
      for (std::size_t k = 0; k < counts.size(); ++k) anew.set_count(k, counts[k]);
      anew.solve();
      for (std::size_t k = 0; k < counts.size(); ++k) {
        ASSERT_NEAR(solver.rate(k), anew.rate(k), kNear * anew.rate(k)) << "class " << k;
        if (counts[k] > 0.0) ++(solver.aggregate(k) < 0 ? apart : members);
      }
      expect_max_min(network, counts, solver);
    }
    ceilings += solver.ceilings_set();
  }
  // Each of these is common, or the test tests nothing.
  EXPECT_GT(members, apart / 10);
  EXPECT_GT(apart, members / 10);
  EXPECT_GT(joins, 1000U);
  EXPECT_GT(leaves, 1000U);
  EXPECT_GT(ceilings, 20 * 4);
}

TEST(MaxMin, AnAggregateKeepsItsDigitsAsHeavyMembersLeave) {
  constexpr std::size_t kClasses = 120;
  std::vector<FlowClass> flows;
  for (std::size_t k = 0; k < kClasses; ++k) {
    flows.push_back({{{0, 1.0}}, std::pow(1.25, static_cast<double>(k)), kInfinity});
  }
  const Network network({1.0}, flows);
  MaxMin solver(network);
  for (std::size_t k = 0; k < kClasses; ++k) {
    solver.set_count(k, 1.0);
    solver.solve();
  }
  EXPECT_EQ(solver.aggregate(0), 0);
  // What is left halves again and again: of the first sum nine digits would be gone.
  double sum = std::accumulate(flows.begin(), flows.end() - 100, 0.0, [](double x, auto& k) { return x + k.weight; });
  for (std::size_t k = kClasses; k-- > kClasses - 100;) {
    solver.set_count(k, 0.0);
    solver.solve();
  }
  EXPECT_EQ(solver.aggregate(0), 0);
  EXPECT_NEAR(solver.rate(0) * sum, 1.0, 1e-12);
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

TEST(FlowEngine, ClassesOfOneSenderTakeTurns) {
  std::vector<FlowClass> classes{{{{0, 1.0}}, 1.0, kInfinity, 0}, {{{1, 1.0}}, 1.0, kInfinity, 0}};
  FlowEngine engine(std::make_shared<const Network>(std::vector<double>{10.0, 10.0}, classes, TurnRule{40.0, 0.0}));
  engine.add(0, 60.0, 1);
  engine.add(1, 30.0, 2);
  EXPECT_DOUBLE_EQ(engine.rate(1), 0.0);
  EXPECT_EQ(engine.limit(1), kIdle);
  EXPECT_DOUBLE_EQ(engine.next_event_time(), 4.0);  // the turn of the first
  EXPECT_TRUE(engine.advance().empty());
  EXPECT_DOUBLE_EQ(engine.rate(0), 0.0);
  EXPECT_DOUBLE_EQ(engine.moved(0), 40.0);
  EXPECT_EQ(engine.advance().front(), 2);
  EXPECT_DOUBLE_EQ(engine.now(), 7.0);
  EXPECT_EQ(engine.advance().front(), 1);
  EXPECT_DOUBLE_EQ(engine.now(), 9.0);
  EXPECT_THROW(Network({1.0}, {{{{0, 1.0}}, 1.0, kInfinity, 1}}), BadInput);  // there is one class, so one sender
  EXPECT_THROW(Network({1.0}, {}, TurnRule{0.0, 0.0}), BadInput);
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

// The classes' bytes between two events are the integral of their rates, and all flows end; for so long that the
// origins of clocks move, while the load of the hubs goes up and down.
TEST(FlowEngine, ClocksOfAggregatesMoveAsTheRatesSay) {
  std::mt19937_64 bits(29);
  for (int round = 0; round < 4; ++round) {
    const auto network = std::make_shared<const Network>(hub_network(bits));
    const std::size_t classes = network->classes().size(), begun = 12'000;
    FlowEngine engine(network);
    std::vector<double> bytes(classes, 0.0), counts(classes, 0.0), moved(classes, 0.0), before(classes, 0.0);
    std::vector<std::size_t> of(begun);
    for (std::size_t i = 0, ended = 0; ended < begun;) {
      const std::size_t most = i % 4000 < 2000 ? 2 * classes : classes / 8;
      if (i < begun && engine.active() < most) {
        of[i] = bits() % classes;
        const auto size = static_cast<double>(bits() % 1000 + 1);
        bytes[of[i]] += size;
        ++counts[of[i]];
        engine.add(static_cast<std::int32_t>(of[i]), size, static_cast<std::int64_t>(i));
        ++i;
        continue;
      }
      const double from = engine.now(), time = engine.next_event_time();
      for (std::size_t k = 0; k < classes; ++k) before[k] = counts[k] * engine.rate(static_cast<std::int32_t>(k));
      if (bits() % 4 == 0) engine.advance_to(from + (time - from) / 3);
      const auto ends = bits() % 4 == 0 ? std::span<const std::int64_t>{} : engine.advance();
      for (std::size_t k = 0; k < classes; ++k) {
        const double now = engine.moved(static_cast<std::int32_t>(k));
        ASSERT_NEAR(now - moved[k], before[k] * (engine.now() - from), kNear * (1.0 + now)) << "class " << k;
        moved[k] = now;
      }
      for (const auto id : ends) --counts[of[static_cast<std::size_t>(id)]];
      ended += ends.size();
    }
    for (std::size_t k = 0; k < classes; ++k) EXPECT_NEAR(moved[k], bytes[k], kNear * bytes[k]);
  }
}

}  // namespace
}  // namespace lanewise::sim
