// Nodes in simulated time, and rules by which queries go to them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <span>
#include <vector>

#include "dispatch/balance.hpp"

namespace lanewise::dispatch {

// A node in simulated time. It serves `servers` queries at once, in the order in which they come.
struct SimulatedNode {
  std::function<double(std::uint64_t query)> service;
  std::size_t servers = 1;
  std::vector<double> free = {};
};

using Choose = std::function<std::size_t(std::span<const Candidate>)>;

struct Simulated {
  double p99 = 0;  // of times from a query to its answer
  std::vector<double> shares;
};

// `rate` queries a unit of time come at random; `told` hears of every round trip.
inline Simulated simulate(std::vector<SimulatedNode> nodes, double rate, std::uint64_t queries, const Choose& choose,
                          const std::function<void(std::size_t, const RoundTrip&)>& told) {
  struct Answer {
    double at, posted;
    std::size_t node;
    std::uint64_t ahead;
    bool operator>(const Answer& other) const { return at > other.at; }
  };
  std::priority_queue<Answer, std::vector<Answer>, std::greater<>> answers;
  std::mt19937_64 random(11);
  std::vector<std::uint64_t> outstanding(nodes.size()), counts(nodes.size());
  for (SimulatedNode& node : nodes) node.free.assign(node.servers, 0.0);
  std::vector<double> times;
  double now = 0;
  for (std::uint64_t query = 0; query < queries; ++query) {
    now -= std::log1p(-std::generate_canonical<double, 53>(random)) / rate;
    for (; !answers.empty() && answers.top().at <= now; answers.pop()) {
      const Answer& answer = answers.top();
      --outstanding[answer.node];
      told(answer.node, {static_cast<float>(answer.ahead), static_cast<float>(answer.at - answer.posted)});
    }
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::size_t node = (query + i) % nodes.size();
      candidates.push_back({node, outstanding[node], 0});
    }
    const std::size_t node = candidates[choose(candidates)].node;
    const auto server = std::ranges::min_element(nodes[node].free);
    *server = std::max(*server, now) + nodes[node].service(query);
    answers.push({*server, now, node, outstanding[node]++});
    ++counts[node];
    times.push_back(*server - now);
  }
  std::ranges::sort(times);
  Simulated result{.p99 = times[times.size() * 99 / 100], .shares = {}};
  for (const std::uint64_t count : counts) {
    result.shares.push_back(static_cast<double>(count) / static_cast<double>(queries));
  }
  return result;
}

inline Simulated balanced(const std::vector<SimulatedNode>& nodes, double rate, std::uint64_t queries) {
  NodeBalance balance;
  balance.reset(nodes.size());
  return simulate(
      nodes, rate, queries, [&](auto candidates) { return balance.choose(candidates); },
      [&](std::size_t node, const RoundTrip& trip) { balance.add(node, trip); });
}

// By somebody who knows each node's interval between answers: the shortest expected delay, or, where all are equal, the
// fewest outstanding.
inline Simulated informed(const std::vector<SimulatedNode>& nodes, double rate, std::uint64_t queries,
                          const std::vector<double>& intervals) {
  const auto delay = [&](const Candidate& each) {
    return static_cast<double>(each.outstanding + 1) * intervals[each.node];
  };
  return simulate(
      nodes, rate, queries,
      [&](std::span<const Candidate> candidates) {
        const auto best = std::ranges::min_element(candidates, {}, delay);
        return static_cast<std::size_t>(best - candidates.begin());
      },
      [](std::size_t, const RoundTrip&) {});
}

inline std::function<double(std::uint64_t)> constant(double time) {
  return [time](std::uint64_t) { return time; };
}

inline std::function<double(std::uint64_t)> exponential(double mean) {
  return [mean, random = std::mt19937_64(5)](std::uint64_t) mutable {
    return -mean * std::log1p(-std::generate_canonical<double, 53>(random));
  };
}

}  // namespace lanewise::dispatch
