#include "serve/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "sim/numbers.hpp"

namespace lanewise::serve {

using sim::at, sim::kInfinity;

namespace {

constexpr std::int64_t kIndex = (std::int64_t{1} << 48) - 1;

bool is_nothing(const Leg& leg) {
  return leg.flow_class == kNoFlow && leg.setup == 0.0 && leg.setup_each == 0.0 && leg.latency == 0.0;
}

}  // namespace

Simulator::Simulator(const std::shared_ptr<const sim::Network>& network, Scenario scenario)
    : scenario_((check(*network, scenario), std::move(scenario))),
      engine_(network),
      classes_(network->classes().size()) {
  pools_.resize(scenario_.pools.size());
  workers_.resize(scenario_.workers.size());
  gpus_.resize(at(scenario_.gpus));
  for (std::size_t s = 0; s < scenario_.services.size(); ++s) {
    const auto stream = [&](std::uint64_t use) { return Random(scenario_.seed, 3 * s + use); };
    services_.push_back({stream(0), stream(1), stream(2), {}, {}});
    if (scenario_.services[s].arrivals == Arrivals::kAtOnce) services_.back().left = scenario_.services[s].total;
  }
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    pools_[p].timer = kInfinity;
    auto& pools = services_[at(scenario_.pools[p].service)].pools;
    places_.push_back(static_cast<std::int32_t>(pools.size()));
    pools.push_back(static_cast<std::int32_t>(p));
  }
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    PoolState& pool = pools_[at(scenario_.workers[w].pool)];
    pool.workers.push_back(static_cast<std::int32_t>(w));
    ++pool.open;
  }
  for (ServiceState& service : services_) service.pool_loads.resize(service.pools.size());
}

void Simulator::begin() {
  out_.services.resize(services_.size());
  out_.busy.resize(gpus_.size());
  step_ = scenario_.steps > 0 ? scenario_.duration / scenario_.steps : 0.0;
  moved_before_.resize(classes_);
  busy_before_.resize(gpus_.size());
  if (step_ > 0.0) later(step_, kStep, 1);
  for (std::size_t b = 0; b < scenario_.background.size(); ++b) {
    later(scenario_.background[b].start, kBackground, static_cast<std::int64_t>(b));
  }
  for (std::size_t s = 0; s < services_.size(); ++s) {
    const Service& service = scenario_.services[s];
    if (service.arrivals == Arrivals::kPoisson) schedule_arrival(s);
    if (service.arrivals == Arrivals::kOneByOne) issue(s, 0.0);
    if (service.arrivals != Arrivals::kAtOnce) continue;
    for (const std::int32_t p : services_[s].pools) {
      supply(at(p));
      form(at(p));
    }
  }
}

bool Simulator::finished() const noexcept {
  if (out_.ended_early) return true;
  if (in_flight_ > 0 || !arrivals_.empty()) return false;
  return std::ranges::all_of(services_, [](const ServiceState& each) { return each.left == 0; });
}

// Handles up to `events` ends of flows and timed events, and all arrivals before each.
void Simulator::turn(std::size_t events) {
  for (; events > 0 && !finished(); --events) {
    const double flow = engine_.next_event_time();
    const double event = events_.empty() ? kInfinity : events_.top().tag;
    const double next = std::min(flow, event);
    if (!arrivals_.empty() && arrivals_.top().tag < next) {
      arrivals_until(next);
      continue;
    }
    if (next == kInfinity) throw std::logic_error("queries are unanswered and nothing is left to happen");
    now_ = next;
    if (flow <= event) {
      for (const std::int64_t id : engine_.advance()) flow_ended(id);
      continue;
    }
    const std::int64_t id = events_.top().id;
    events_.pop();
    handle(id);
  }
}

// Queries that begin before `time`, as long as none of them sets off something that may come sooner.
void Simulator::arrivals_until(double time) {
  const std::size_t events = events_.size(), active = engine_.active();
  while (!arrivals_.empty() && arrivals_.top().tag < time) {
    const auto service = static_cast<std::size_t>(arrivals_.top().id);
    now_ = arrivals_.top().tag;
    arrivals_.pop();
    schedule_arrival(service);
    issue(service, now_);
    if (events_.size() != events || engine_.active() != active) return;
  }
}

void Simulator::schedule_arrival(std::size_t s) {
  const double next = now_ + services_[s].arrivals.exponential(1.0 / scenario_.services[s].rate);
  if (next < scenario_.duration) arrivals_.push({next, static_cast<std::int64_t>(s)});
}

void Simulator::issue(std::size_t s, double scheduled) {
  const std::int32_t samples = scenario_.services[s].samples;
  ++out_.services[s].issued;
  std::int32_t query = -1;
  if (samples > 1) {
    if (free_queries_.empty()) {
      free_queries_.push_back(static_cast<std::int32_t>(queries_.size()));
      queries_.emplace_back();
    }
    query = free_queries_.back();
    free_queries_.pop_back();
    queries_[at(query)] = {scheduled, samples};
  }
  if (samples == 1) return move_on(add_sample(s, {scheduled, scheduled, scheduled, query}));
  // All samples of a query are there at once, so they may share a batch.
  for (std::int32_t i = 0; i < samples; ++i) add_sample(s, {scheduled, scheduled, scheduled, query});
  for (const std::int32_t p : services_[s].pools) move_on(at(p));
}

// Queues a sample in the pool that it is sent to, which is returned.
std::size_t Simulator::add_sample(std::size_t s, const Sample& sample) {
  out_.most_in_flight = std::max(out_.most_in_flight, ++in_flight_);
  const std::size_t chosen = choose_pool(s);
  services_[s].pool_loads.sent(chosen);
  const std::size_t p = at(services_[s].pools[chosen]);
  (is_nothing(scenario_.pools[p].arrive) ? pools_[p].waiting : pools_[p].arriving).push(sample);
  return p;
}

void Simulator::move_on(std::size_t p) {
  send(p);
  form(p);
}

// Which of the service's pools the next sample goes to.
std::size_t Simulator::choose_pool(std::size_t s) {
  ServiceState& service = services_[s];
  const std::size_t pools = service.pools.size();
  switch (scenario_.services[s].dispatch) {
    case Dispatch::kRoundRobin:
      return service.turn++ % pools;
    case Dispatch::kRandom:
      return pools == 1 ? 0 : service.choices.below(pools);
    case Dispatch::kLeastOutstanding:
      break;
  }
  return service.pool_loads.least();
}

// Offline: hands over as many samples as keep the pool's workers supplied; the rest wait at the source.
void Simulator::supply(std::size_t p) {
  PoolState& pool = pools_[p];
  const std::size_t s = at(scenario_.pools[p].service);
  ServiceState& service = services_[s];
  const auto workers = static_cast<std::int64_t>(pool.workers.size());
  const std::int64_t wanted = 2 * workers * scenario_.services[s].batch;
  while (service.left > 0 && static_cast<std::int64_t>(pool.waiting.size() + pool.arriving.size()) < wanted) {
    --service.left;
    ++out_.services[s].issued;
    service.pool_loads.sent(at(places_[p]));
    out_.most_in_flight = std::max(out_.most_in_flight, ++in_flight_);
    (is_nothing(scenario_.pools[p].arrive) ? pool.waiting : pool.arriving).push({0.0, 0.0, 0.0, -1});
  }
}

void Simulator::handle(std::int64_t id) {
  const std::int64_t what = id >> 48, index = id & kIndex;
  const auto group = static_cast<std::int32_t>(index);
  if (what < kEnds) return begin_move(static_cast<Move>(what - kBegins), group);
  if (what < kServed) return end_move(static_cast<Move>(what - kEnds), group);
  if (what == kServed) return served(group);
  if (what == kBackground) return background(static_cast<std::size_t>(index));
  if (what == kStep) return end_step(index);
  pools_[static_cast<std::size_t>(index)].timer = kInfinity;
  form(static_cast<std::size_t>(index));
}

void Simulator::background(std::size_t b) {
  const Background& each = scenario_.background[b];
  engine_.advance_to(now_);
  engine_.add(each.flow_class, each.bytes, (std::int64_t{kMoves} << 48) | static_cast<std::int64_t>(b));
  if (each.period > 0.0 && now_ + each.period < scenario_.duration) {
    later(now_ + each.period, kBackground, static_cast<std::int64_t>(b));
  }
}

// Keeps what each flow class moved and each GPU worked since the last step.
void Simulator::end_step(std::int64_t number) {
  engine_.advance_to(now_);
  std::vector<double> bytes(classes_), busy(gpus_.size());
  for (std::size_t k = 0; k < classes_; ++k) {
    const double moved = engine_.moved(static_cast<std::int32_t>(k));
    bytes[k] = moved - std::exchange(moved_before_[k], moved);
  }
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    const double worked = out_.busy[g] + (gpus_[g].running.empty() ? 0.0 : now_ - gpus_[g].since);
    busy[g] = worked - std::exchange(busy_before_[g], worked);
  }
  out_.steps.push_back(std::move(bytes));
  out_.gpu_steps.push_back(std::move(busy));
  if (number < scenario_.steps) later(step_ * static_cast<double>(number + 1), kStep, number + 1);
}

Outcome Simulator::end() {
  out_.end = now_;
  if (engine_.now() < now_) engine_.advance_to(now_);
  out_.moved.resize(classes_);
  for (std::size_t k = 0; k < classes_; ++k) out_.moved[k] = engine_.moved(static_cast<std::int32_t>(k));
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    if (!gpus_[g].running.empty()) out_.busy[g] += now_ - gpus_[g].since;
  }
  return std::move(out_);
}

std::int32_t Simulator::take_group(std::int32_t owner) {
  if (free_groups_.empty()) {
    free_groups_.push_back(static_cast<std::int32_t>(groups_.size()));
    groups_.emplace_back();
  }
  const std::int32_t index = free_groups_.back();
  free_groups_.pop_back();
  groups_[at(index)].owner = owner;
  groups_[at(index)].due = -1.0;
  groups_[at(index)].samples.clear();
  return index;
}

}  // namespace lanewise::serve
