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
  bool measured = true;
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& each : candidates) {
    Node& node = nodes_[each.node];
    measured = measured && node.time.measured();
    node.expected = node.time.expected(each.outstanding);
    least = std::min(least, node.expected);
  }
  const double most = measured ? kEqual * least : std::numeric_limits<double>::infinity();
  const Candidate* best = nullptr;
  for (const Candidate& each : candidates) {
    Node& node = nodes_[each.node];
    if (measured && each.outstanding == 0 && chosen_ - node.last > kStale) {
      node.probed = true;
      best = &each;
      break;
    }
    if (node.expected > most) continue;
    if (best == nullptr || each.outstanding < best->outstanding ||
        (each.outstanding == best->outstanding && each.distance < best->distance)) {
      best = &each;
    }
  }
  nodes_[best->node].last = chosen_;
  return static_cast<std::size_t>(best - candidates.data());
}

}  // namespace lanewise::dispatch
