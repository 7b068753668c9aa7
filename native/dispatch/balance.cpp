#include "dispatch/balance.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace lanewise::dispatch {

void CompletionTime::add(const RoundTrip& trip) noexcept {
  const double weight = std::max(kWeight, 1.0 / ++count_);
  time_ += weight * (trip.time - time_);
  in_flight_ += weight * (1.0 + trip.ahead - in_flight_);
  interval_ = time_ / in_flight_;
  // A minimum that forgets: without shorter ones it doubles in some 180 round trips.
  shortest_ = count_ == 1 ? trip.time : std::min<double>(trip.time, shortest_ * (1 + kWeight / 4));
}

double CompletionTime::expected(std::uint64_t ahead) const noexcept {
  return std::max(shortest_, static_cast<double>(ahead + 1) * interval_);
}

void NodeBalance::reset(std::size_t nodes) {
  nodes_.assign(nodes, {});
  chosen_ = 0;
}

void NodeBalance::add(std::size_t node, const RoundTrip& trip) noexcept {
  Node& of = nodes_[node];
  if (std::exchange(of.probed, false)) of.time = {};  // what it was long ago does not slow down what it is now
  of.time.add(trip);
}

std::size_t NodeBalance::choose(std::span<const Candidate> candidates) noexcept {
  ++chosen_;
  const bool measured =
      std::ranges::all_of(candidates, [this](const Candidate& each) { return nodes_[each.node].time.measured(); });
  double most = std::numeric_limits<double>::infinity();
  const auto expected = [this](const Candidate& each) { return nodes_[each.node].time.expected(each.outstanding); };
  if (measured) {
    for (const Candidate& each : candidates) most = std::min(most, kEqual * expected(each));
  }
  const auto rank = [](const Candidate& each) { return std::pair(each.outstanding, each.distance); };
  const Candidate* best = nullptr;
  bool probe = false;
  for (const Candidate& each : candidates) {
    if (measured && each.outstanding == 0 && chosen_ - nodes_[each.node].last > kStale) {
      best = &each;
      probe = true;
      break;
    }
    if (expected(each) <= most && (best == nullptr || rank(each) < rank(*best))) best = &each;
  }
  Node& node = nodes_[best->node];
  node.last = chosen_;
  node.probed = node.probed || probe;
  return static_cast<std::size_t>(best - candidates.data());
}

}  // namespace lanewise::dispatch
