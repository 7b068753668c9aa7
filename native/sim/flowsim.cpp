#include "sim/flowsim.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

namespace lanewise::sim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargest = 1e60;
// A clock's origin moves after this many ends, or four times its flows if that is more: so the reading stays within
// a few thousand sizes of zero and keeps its digits, at a constant cost per end.
constexpr std::size_t kEndsPerOrigin = 4096;

}  // namespace

FlowEngine::FlowEngine(std::shared_ptr<const Network> network)
    : network_(std::move(network)), lane_of_class_(network_->classes().size()) {
  lanes_.resize(network_->classes().size());
  part_of_lane_.resize(lanes_.size());
  std::size_t lane = 0;
  parts_.reserve(network_->components().size());
  for (const Component& component : network_->components()) {
    parts_.push_back({MaxMin(*network_, component), lane, std::vector<double>(component.classes.size()), {}});
    for (const auto k : component.classes) {
      lane_of_class_[static_cast<std::size_t>(k)] = lane;
      part_of_lane_[lane] = parts_.size() - 1;
      lanes_[lane++].due = kInfinity;
    }
  }
  leaves_ = std::bit_ceil(std::max<std::size_t>(1, parts_.size()));
  first_due_.assign(2 * leaves_, kInfinity);
  stale_.reserve(parts_.size());
}

void FlowEngine::add(std::int32_t flow_class, double bytes, std::int64_t id) {
  if (flow_class < 0 || static_cast<std::size_t>(flow_class) >= lane_of_class_.size()) {
    throw BadInput("transfer " + std::to_string(id) + " is of flow class " + std::to_string(flow_class) +
                       ", but there are " + std::to_string(lane_of_class_.size()),
                   "flow classes count from 0 in the order they are given");
  }
  if (!(bytes >= 0.0 && bytes <= kLargest)) {
    throw BadInput("transfer " + std::to_string(id) + " has a size of " + show(bytes) + " B",
                   "sizes are bytes from 0 to 1e60");
  }
  ++active_;
  if (bytes == 0.0) {
    instant_.push_back(id);
    return;
  }
  const std::size_t where = lane_of_class_[static_cast<std::size_t>(flow_class)];
  Lane& lane = lanes_[where];
  run_clock(lane);
  lane.flows.push({lane.served + bytes, id});
  count(where, 1.0);
}

double FlowEngine::next_event_time() {
  if (!instant_.empty()) return now_;
  settle();
  return std::max(now_, first_due_[1]);
}

std::span<const std::int64_t> FlowEngine::advance() {
  ended_.clear();
  const double next = next_event_time();
  if (next == kInfinity) return ended_;
  now_ = next;
  ended_.swap(instant_);
  while (first_due_[1] <= now_) {
    std::size_t node = 1;
    while (node < leaves_) node = first_due_[2 * node] <= first_due_[2 * node + 1] ? 2 * node : 2 * node + 1;
    const Part& part = parts_[node - leaves_];
    const auto& active = part.solver.active();
    for (std::size_t i = active.size(); i-- > 0;) {  // backwards: a class without flows leaves the list
      const std::size_t lane = part.first + static_cast<std::size_t>(active[i]);
      if (lanes_[lane].due <= now_) end_flows(lane);
    }
    // The rest of this part is solved anew before the next event; until then nothing of it is due.
    for (first_due_[node] = kInfinity, node /= 2; node > 0; node /= 2) {
      first_due_[node] = std::min(first_due_[2 * node], first_due_[2 * node + 1]);
    }
  }
  active_ -= ended_.size();
  if (ended_.size() > 1) std::sort(ended_.begin(), ended_.end());
  return ended_;
}

void FlowEngine::advance_to(double time) {
  if (!(time >= now_)) {
    throw BadInput("time cannot go back from " + show(now_) + " s to " + show(time) + " s", "advance to a later time");
  }
  if (time > next_event_time()) {
    throw BadInput("a transfer ends at " + show(next_event_time()) + " s, before " + show(time) + " s",
                   "call advance() first");
  }
  now_ = time;
}

double FlowEngine::rate(std::int32_t flow_class) {
  settle();
  return lanes_.at(lane_of_class_.at(static_cast<std::size_t>(flow_class))).rate;
}

// Takes the flows of a lane whose end has come, with all that have the same tag.
void FlowEngine::end_flows(std::size_t where) {
  Lane& lane = lanes_[where];
  lane.served = lane.flows.top().tag;
  lane.since = now_;
  double gone = 0.0;
  while (!lane.flows.empty() && lane.flows.top().tag <= lane.served) {
    ended_.push_back(lane.flows.top().id);
    lane.flows.pop();
    gone += 1.0;
  }
  lane.ends += static_cast<std::size_t>(gone);
  if (lane.flows.empty()) {
    lane.served = 0.0;
    lane.ends = 0;
  } else if (lane.ends >= std::max(kEndsPerOrigin, 4 * lane.flows.size())) {
    lane.flows.rebase(lane.served);
    lane.served = 0.0;
    lane.ends = 0;
  }
  count(where, -gone);
}

void FlowEngine::count(std::size_t where, double change) {
  Lane& lane = lanes_[where];
  const std::size_t index = part_of_lane_[where];
  Part& part = parts_[index];
  const std::size_t k = where - part.first;
  const double before = part.solver.count(k), after = before + change;
  part.solver.set_count(k, after);
  part.differ += static_cast<std::size_t>(after != part.solved[k]) - static_cast<std::size_t>(before != part.solved[k]);
  part.touched.push_back(static_cast<std::int32_t>(k));
  set_due(lane);
  if (part.stale) return;
  part.stale = true;
  stale_.push_back(index);
}

// Brings rates and due times up to date after flows came or went.
void FlowEngine::settle() {
  if (stale_.empty()) return;
  for (const std::size_t index : stale_) {
    Part& part = parts_[index];
    part.stale = false;
    // One flow ended and a like one began at the same instant: the rates still hold.
    if (part.differ > 0) solve(part);
    part.touched.clear();
    refresh_due(index);
  }
  stale_.clear();
  if (changed_) record();
}

void FlowEngine::solve(Part& part) {
  part.solver.solve();
  part.differ = 0;
  for (const auto index : part.touched) {
    const auto k = static_cast<std::size_t>(index);
    part.solved[k] = part.solver.count(k);
    Lane& lane = lanes_[part.first + k];
    if (part.solved[k] > 0.0 || lane.rate == 0.0) continue;
    lane.rate = 0.0;
    changed_ = true;
  }
  for (const auto index : part.solver.active()) {
    const auto k = static_cast<std::size_t>(index);
    Lane& lane = lanes_[part.first + k];
    if (lane.rate == part.solver.rate(k)) continue;
    run_clock(lane);
    lane.rate = part.solver.rate(k);
    set_due(lane);
    changed_ = true;
  }
}

void FlowEngine::refresh_due(std::size_t index) {
  const Part& part = parts_[index];
  double least = kInfinity;
  for (const auto k : part.solver.active()) {
    least = std::min(least, lanes_[part.first + static_cast<std::size_t>(k)].due);
  }
  std::size_t node = leaves_ + index;
  first_due_[node] = least;
  for (node /= 2; node > 0; node /= 2) first_due_[node] = std::min(first_due_[2 * node], first_due_[2 * node + 1]);
}

void FlowEngine::run_clock(Lane& lane) const {
  if (!lane.flows.empty()) {
    // Rounding must not carry the clock past an end that has not happened.
    lane.served = std::min(lane.served + lane.rate * (now_ - lane.since), lane.flows.top().tag);
  }
  lane.since = now_;
}

void FlowEngine::set_due(Lane& lane) const {
  const bool waits = lane.flows.empty() || lane.rate == 0.0;
  lane.due = waits ? kInfinity : lane.since + (lane.flows.top().tag - lane.served) / lane.rate;
}

void FlowEngine::record() {
  changed_ = false;
  if (keep_ == 0) return;
  const bool replaces = !changes_.empty() && changes_.back().time == now_;
  if (!replaces && changes_.size() >= keep_) {
    complete_ = false;
    return;
  }
  if (!replaces) changes_.push_back({now_, std::vector<double>(lanes_.size())});
  for (std::size_t k = 0; k < lanes_.size(); ++k) changes_.back().rates[k] = lanes_[lane_of_class_[k]].rate;
}

namespace {

void check(const Network& network, const Transfers& transfers) {
  const std::size_t size = transfers.bytes.size();
  if (transfers.flow_class.size() != size || transfers.start.size() != size) {
    throw BadInput("classes, sizes and starts of the transfers differ in number", "give one of each for each transfer");
  }
  for (std::size_t i = 0; i < size; ++i) {
    const std::string who = "transfer ";
    if (transfers.flow_class[i] < 0 || static_cast<std::size_t>(transfers.flow_class[i]) >= network.classes().size()) {
      throw BadInput(who + std::to_string(i) + " is of flow class " + std::to_string(transfers.flow_class[i]) +
                         ", but there are " + std::to_string(network.classes().size()),
                     "flow classes count from 0 in the order they are given");
    }
    if (!(transfers.bytes[i] >= 0.0 && transfers.bytes[i] <= kLargest)) {
      throw BadInput(who + std::to_string(i) + " has a size of " + show(transfers.bytes[i]) + " B",
                     "sizes are bytes from 0 to 1e60");
    }
    if (!(transfers.start[i] >= 0.0 && transfers.start[i] <= kLargest)) {
      throw BadInput(who + std::to_string(i) + " starts at " + show(transfers.start[i]) + " s",
                     "starts are seconds from 0 to 1e60");
    }
  }
}

}  // namespace

Outcome run_flows(std::shared_ptr<const Network> network, const Transfers& transfers, std::size_t keep_rates) {
  check(*network, transfers);
  const std::size_t size = transfers.bytes.size();
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto& start = transfers.start;
  if (!std::is_sorted(start.begin(), start.end())) {
    std::stable_sort(order.begin(), order.end(), [&start](auto a, auto b) { return start[a] < start[b]; });
  }
  FlowEngine engine(std::move(network));
  engine.keep_rates(keep_rates);
  Outcome out{std::vector<double>(size), {}, true};
  std::size_t arrived = 0;
  while (arrived < size || engine.active() > 0) {
    const double arrival = arrived < size ? start[order[arrived]] : kInfinity;
    if (engine.next_event_time() <= arrival) {
      for (const std::int64_t id : engine.advance()) out.finishes[static_cast<std::size_t>(id)] = engine.now();
      continue;
    }
    engine.advance_to(arrival);
    for (; arrived < size && start[order[arrived]] == arrival; ++arrived) {
      const std::size_t i = order[arrived];
      engine.add(transfers.flow_class[i], transfers.bytes[i], static_cast<std::int64_t>(i));
    }
  }
  engine.next_event_time();  // the last end sets all rates to zero: that is a change, too
  out.rates = engine.rates();
  out.rates_complete = engine.rates_complete();
  return out;
}

}  // namespace lanewise::sim
