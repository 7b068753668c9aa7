#include "sim/flowsim.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/numbers.hpp"

namespace lanewise::sim {
namespace {

// A clock's origin moves after this many ends, or four times its flows if that is more: so the reading stays within
// a few thousand sizes of zero and keeps its digits, at a constant cost per end.
constexpr std::size_t kEndsPerOrigin = 4096;
// A flow that would have less than this part of a turn left ends with the turn: no rounding makes it wait for another.
constexpr double kLeftOver = 1e-9;

}  // namespace

FlowEngine::FlowEngine(std::shared_ptr<const Network> network)
    : network_(std::move(network)), solver_(*network_), clocks_(network_->classes().size()) {
  const Aggregates& aggregates = solver_.aggregates();
  aggregates_.resize(aggregates.size());
  for (std::size_t a = 0; a < aggregates_.size(); ++a) {
    const auto& members = aggregates.classes(a);
    aggregates_[a].due.resize(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      clocks_[static_cast<std::size_t>(members[i])].place = static_cast<std::int32_t>(i);
    }
  }
  due_.resize(clocks_.size() + aggregates_.size());
  for (std::size_t k = 0; k < clocks_.size(); ++k) {
    clocks_[k].sender = network_->classes()[k].sender;
    if (clocks_[k].sender >= 0) senders_.resize(clocks_.size());
  }
}

void FlowEngine::add(std::int32_t flow_class, double bytes, std::int64_t id) {
  if (flow_class < 0 || static_cast<std::size_t>(flow_class) >= clocks_.size()) {
    throw BadInput("transfer " + std::to_string(id) + " is of flow class " + std::to_string(flow_class) +
                       ", but there are " + std::to_string(clocks_.size()),
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
  const auto where = static_cast<std::size_t>(flow_class);
  ClassClock& clock = clocks_[where];
  turn_clock(clock, reading(clock));
  if (clock.sender >= 0 && clock.flows.empty()) queue_for_turn(where);
  clock.flows.push({clock.served + bytes, id});
  touch(where);
}

double FlowEngine::next_event_time() {
  settle();
  return instant_.empty() ? std::max(now_, due_.least()) : now_;
}

std::span<const std::int64_t> FlowEngine::advance() {
  ended_.clear();
  const double next = next_event_time();
  if (next == kInfinity) return ended_;
  now_ = next;
  ended_.swap(instant_);
  ending_.clear();
  due_.find(now_, ending_);
  for (const std::size_t where : ending_) {
    where < clocks_.size() ? end_flows(where) : end_members(where - clocks_.size());
  }
  active_ -= ended_.size();
  if (ended_.size() > 1) std::ranges::sort(ended_);
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
  const auto where = static_cast<std::size_t>(flow_class);
  return clocks_.at(where).aggregate < 0 ? clocks_[where].rate : solver_.rate(where);
}

std::int32_t FlowEngine::limit(std::int32_t flow_class) {
  settle();
  const auto where = static_cast<std::size_t>(flow_class);
  return clocks_.at(where).flows.empty() || waits(clocks_[where]) ? kIdle : solver_.limit(where);
}

double FlowEngine::moved(std::int32_t flow_class) const {
  const ClassClock& clock = clocks_.at(static_cast<std::size_t>(flow_class));
  return clock.moved + (reading(clock) - clock.served) * static_cast<double>(clock.flows.size());
}

double FlowEngine::reading(const AggregateClock& clock) const {
  // Here as below, rounding must not carry the clock past an end that has not happened.
  return std::min(clock.served + clock.level * (now_ - clock.since), clock.due.least());
}

// What the virtual clock of a class runs on: time, or the clock of its aggregate.
double FlowEngine::base(const ClassClock& clock) const {
  return clock.aggregate < 0 ? now_ : reading(aggregates_[static_cast<std::size_t>(clock.aggregate)]);
}

// The virtual clock of a class at now().
double FlowEngine::reading(const ClassClock& clock) const {
  if (clock.flows.empty()) return clock.served;
  return std::min(clock.served + clock.rate * (base(clock) - clock.since), clock.next());
}

void FlowEngine::turn_clock(ClassClock& clock, double reading) const {
  clock.moved += (reading - clock.served) * static_cast<double>(clock.flows.size());
  clock.served = reading;
  clock.since = base(clock);
}

// The first flow of a class that takes turns comes.
void FlowEngine::queue_for_turn(std::size_t where) {
  std::deque<std::size_t>& queue = senders_[at(clocks_[where].sender)];
  queue.push_back(where);
  if (queue.size() != 2) return;
  const double apart = network_->turns().apart * clocks_[where].sender;
  begin_turn(queue.front(), network_->turns().bytes * (1.0 - (apart - std::floor(apart))));
}

void FlowEngine::begin_turn(std::size_t where, double bytes) {
  ClassClock& clock = clocks_[where];
  clock.turn_end = reading(clock) + bytes;
  touch(where);
}

// The class that has its turn has no more flows, or its turn has ended.
void FlowEngine::pass_turn(std::size_t where) {
  ClassClock& clock = clocks_[where];
  if (!clock.flows.empty() && clock.served < clock.turn_end) return;
  std::deque<std::size_t>& queue = senders_[at(clock.sender)];
  queue.pop_front();
  clock.turn_end = kInfinity;
  if (!clock.flows.empty()) queue.push_back(where);
  if (queue.empty()) return;
  touch(queue.front());
  if (queue.size() > 1) begin_turn(queue.front(), network_->turns().bytes);
}

bool FlowEngine::waits(const ClassClock& clock) const {
  if (clock.sender < 0) return false;
  const std::deque<std::size_t>& queue = senders_[at(clock.sender)];
  return queue.empty() || &clocks_[queue.front()] != &clock;
}

// Takes the flows of a class whose end has come, with all that have the same tag; or ends its turn, and with it those
// flows, whenever they came, that only rounding carries past it.
void FlowEngine::end_flows(std::size_t where) {
  ClassClock& clock = clocks_[where];
  turn_clock(clock, clock.next());
  const bool turn_ends = clock.served >= clock.turn_end;
  const double last = clock.served + (turn_ends ? kLeftOver * network_->turns().bytes : 0.0);
  while (!clock.flows.empty() && clock.flows.top().tag <= last) {
    clock.moved += clock.flows.top().tag - clock.served;
    ended_.push_back(clock.flows.top().id);
    clock.flows.pop();
    ++clock.ends;
  }
  if (clock.sender >= 0) pass_turn(where);
  if (clock.flows.empty()) {
    clock.served = 0.0;
    clock.ends = 0;
  } else if (clock.ends >= std::max(kEndsPerOrigin, 4 * clock.flows.size())) {
    clock.flows.rebase(clock.served);
    clock.turn_end -= clock.served;
    clock.served = 0.0;
    clock.ends = 0;
  }
  touch(where);
}

// Ends the flows of those members that are next.
void FlowEngine::end_members(std::size_t a) {
  AggregateClock& clock = aggregates_[a];
  clock.served = clock.due.least();
  clock.since = now_;
  places_.clear();
  clock.due.find(clock.served, places_);
  for (const std::size_t place : places_) {
    end_flows(static_cast<std::size_t>(solver_.aggregates().classes(a)[place]));
    ++clock.ends;
  }
}

void FlowEngine::touch(std::size_t where) {
  if (clocks_[where].touched) return;
  clocks_[where].touched = true;
  touched_.push_back(where);
}

void FlowEngine::touch_aggregate(std::size_t a) {
  if (aggregates_[a].touched) return;
  aggregates_[a].touched = true;
  touched_aggregates_.push_back(a);
}

// Brings rates and due times up to date after flows came or went.
void FlowEngine::settle() {
  if (touched_.empty()) return;
  for (const std::size_t where : touched_) {
    solver_.set_count(where, waits(clocks_[where]) ? 0.0 : static_cast<double>(clocks_[where].flows.size()));
  }
  const auto solved = solver_.solve();
  for (const std::int32_t where : solver_.switched()) change_clock(static_cast<std::size_t>(where));
  for (const std::int32_t index : solved) {
    const auto where = static_cast<std::size_t>(index);
    where < clocks_.size() ? set_rate(where) : set_level(where - clocks_.size());
  }
  for (const std::size_t where : touched_) {
    set_rate(where);
    set_due(where);
    clocks_[where].touched = false;
  }
  touched_.clear();
  for (const std::size_t a : touched_aggregates_) set_aggregate_due(a);
  touched_aggregates_.clear();
  due_.update();
  if (changed_) record();
}

void FlowEngine::set_rate(std::size_t where) {
  ClassClock& clock = clocks_[where];
  if (clock.aggregate >= 0) return;
  const double rate = solver_.rate(where);
  if (clock.rate == rate) return;
  turn_clock(clock, reading(clock));
  clock.rate = rate;
  changed_ = true;
  if (!clock.touched) set_due(where);
}

void FlowEngine::set_level(std::size_t a) {
  AggregateClock& clock = aggregates_[a];
  const double level = solver_.level(a);
  if (clock.level == level) return;
  clock.served = reading(clock);
  clock.since = now_;
  clock.level = level;
  changed_ = true;
  touch_aggregate(a);
}

// The class became a member of its aggregate, or is so no longer.
void FlowEngine::change_clock(std::size_t where) {
  ClassClock& clock = clocks_[where];
  const std::int32_t aggregate = solver_.aggregate(where);
  if (aggregate == clock.aggregate) return;
  turn_clock(clock, reading(clock));
  set_due(where, kInfinity);
  const double level = clock.aggregate < 0 ? 1.0 : aggregates_[static_cast<std::size_t>(clock.aggregate)].level;
  changed_ = changed_ || clock.rate * level != solver_.rate(where);
  clock.aggregate = aggregate;
  clock.since = base(clock);
  clock.rate = aggregate < 0 ? solver_.rate(where) : network_->classes()[where].weight;
  if (!clock.touched) set_due(where);
}

void FlowEngine::set_due(std::size_t where) {
  const ClassClock& clock = clocks_[where];
  const bool stopped = clock.flows.empty() || clock.rate == 0.0;
  set_due(where, stopped ? kInfinity : clock.since + (clock.next() - clock.served) / clock.rate);
}

void FlowEngine::set_due(std::size_t where, double when) {
  const ClassClock& clock = clocks_[where];
  if (clock.aggregate < 0) return due_.set(where, when);
  const auto a = static_cast<std::size_t>(clock.aggregate);
  aggregates_[a].due.set(static_cast<std::size_t>(clock.place), when);
  touch_aggregate(a);
}

void FlowEngine::set_aggregate_due(std::size_t a) {
  AggregateClock& clock = aggregates_[a];
  clock.due.update();
  if (clock.ends >= std::max(kEndsPerOrigin, 4 * solver_.aggregates().classes(a).size())) move_origin(a);
  const bool stopped = clock.due.least() == kInfinity || clock.level == 0.0;
  clock.touched = false;
  due_.set(clocks_.size() + a, stopped ? kInfinity : clock.since + (clock.due.least() - clock.served) / clock.level);
}

// Moves the origin of an aggregate's clock to what it reads now.
void FlowEngine::move_origin(std::size_t a) {
  AggregateClock& clock = aggregates_[a];
  const double origin = reading(clock);
  for (const std::int32_t where : solver_.aggregates().classes(a)) {
    ClassClock& member = clocks_[static_cast<std::size_t>(where)];
    if (member.aggregate < 0) continue;
    member.since -= origin;
    set_due(static_cast<std::size_t>(where));
  }
  clock.served = 0.0;
  clock.since = now_;
  clock.ends = 0;
  clock.due.update();
}

void FlowEngine::record() {
  changed_ = false;
  if (keep_ == 0) return;
  const bool replaces = !changes_.empty() && changes_.back().time == now_;
  if (!replaces && changes_.size() >= keep_) {
    complete_ = false;
    return;
  }
  if (!replaces) changes_.push_back({now_, std::vector<double>(clocks_.size())});
  for (std::size_t k = 0; k < clocks_.size(); ++k) {
    changes_.back().rates[k] = clocks_[k].aggregate < 0 ? clocks_[k].rate : solver_.rate(k);
  }
}

}  // namespace lanewise::sim
