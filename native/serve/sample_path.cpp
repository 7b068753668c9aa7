// A sample's path through the service: brought to its pool, batched, copied, served, returned.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "serve/simulator.hpp"
#include "sim/numbers.hpp"

namespace lanewise::serve {

using sim::at;

// Begins transfers of arriving samples while the connection has a free slot; those that wait leave together.
void Simulator::send(std::size_t p) {
  const Leg& leg = scenario_.pools[p].arrive;
  PoolState& pool = pools_[p];
  while (!pool.arriving.empty() && pool.transfers < leg.slots) {
    const std::int32_t index = take_group(static_cast<std::int32_t>(p));
    Group& group = groups_[at(index)];
    while (!pool.arriving.empty() && group.samples.size() < at(leg.most)) {
      group.samples.push_back(pool.arriving.pop());
      group.samples.back().began = now_;
    }
    ++pool.transfers;
    set_off(kArriving, index);
  }
}

void Simulator::landed(std::int32_t index) {
  Group& group = groups_[at(index)];
  const std::size_t p = at(group.owner);
  for (Sample& sample : group.samples) {
    sample.landed = now_;
    pools_[p].waiting.push(sample);
  }
  free_groups_.push_back(index);
  form(p);
}

// Forms batches while a worker is free and samples wait that fill one or have waited long enough.
void Simulator::form(std::size_t p) {
  PoolState& pool = pools_[p];
  const std::size_t s = at(scenario_.pools[p].service);
  const Service& service = scenario_.services[s];
  const bool own = service.waiting == Waiting::kWorker;
  while (pool.open > 0 && !pool.waiting.empty()) {
    const bool full = pool.waiting.size() >= at(service.batch);
    Due due{pool.waiting.front().landed + service.timeout, 0};
    if (own && !full) due = first_due(pool, service.timeout);
    if (!full && due.time > now_) {
      wait_until(p, due.time);
      break;
    }
    std::size_t w = due.worker;
    if (!own) w = pick_worker(pool, service.in_turn);
    if (own && full) w = any_open_worker(pool, services_[s].choices);
    const std::int32_t index = take_group(static_cast<std::int32_t>(w));
    Group& group = groups_[at(index)];
    group.formed = now_;
    while (!pool.waiting.empty() && group.samples.size() < at(service.batch))
      group.samples.push_back(pool.waiting.pop());
    ++workers_[w].copies;
    ++workers_[w].held;
    workers_[w].free_since = now_;
    update(w);
    supply(p);
    set_off(kCopying, index);
  }
  send(p);
}

void Simulator::wait_until(std::size_t p, double due) {
  if (pools_[p].timer <= due) return;
  pools_[p].timer = due;
  later(due, kTimeout, static_cast<std::int64_t>(p));
}

// The open worker whose wait ends first, and when. Waits follow each other without a break while nobody comes.
Simulator::Due Simulator::first_due(const PoolState& pool, double timeout) const {
  Due first{sim::kInfinity, 0};
  for (const std::int32_t w : pool.workers) {
    const WorkerState& worker = workers_[at(w)];
    if (!worker.open) continue;
    const double passed = std::max(0.0, pool.waiting.front().landed - worker.free_since);
    const double waits = timeout > 0.0 ? std::floor(passed / timeout) + 1.0 : 0.0;
    const double due = worker.free_since + waits * timeout;
    if (due < first.time) first = {due, at(w)};
  }
  return first;
}

std::size_t Simulator::any_open_worker(const PoolState& pool, Random& choices) {
  std::size_t skip = pool.open > 1 ? choices.below(static_cast<std::size_t>(pool.open)) : 0;
  for (const std::int32_t w : pool.workers) {
    if (workers_[at(w)].open && skip-- == 0) return at(w);
  }
  throw std::logic_error("no worker of the pool is open");
}

// The open worker with the fewest batches, of equals (or of all) the next in turn.
std::size_t Simulator::pick_worker(PoolState& pool, bool in_turn) {
  const std::size_t count = pool.workers.size();
  std::size_t best = count, least = std::numeric_limits<std::size_t>::max();
  for (std::size_t i = 0; i < count && least > 0; ++i) {
    const std::size_t next = (pool.turn + i) % count;
    const WorkerState& worker = workers_[at(pool.workers[next])];
    if (!worker.open || at(worker.held) >= least) continue;
    least = at(worker.held);
    best = next;
    if (in_turn) break;
  }
  pool.turn = best + 1;
  return at(pool.workers[best]);
}

void Simulator::update(std::size_t w) {
  WorkerState& state = workers_[w];
  const Worker& worker = scenario_.workers[w];
  const bool open = state.copies < worker.copy.slots && state.held < worker.buffers;
  if (open == state.open) return;
  state.open = open;
  if (open) state.free_since = now_;
  pools_[at(worker.pool)].open += open ? 1 : -1;
}

const Leg& Simulator::leg(Move move, std::int32_t owner) const {
  if (move == kArriving) return scenario_.pools[at(owner)].arrive;
  const Worker& worker = scenario_.workers[at(owner)];
  return move == kCopying ? worker.copy : worker.back;
}

void Simulator::set_off(Move move, std::int32_t group) {
  const Group& moved = groups_[at(group)];
  const Leg& way = leg(move, moved.owner);
  const double setup = way.setup + way.setup_each * static_cast<double>(moved.samples.size());
  if (setup > 0.0) return later(now_ + setup, kBegins + move, group);
  begin_move(move, group);
}

void Simulator::begin_move(Move move, std::int32_t index) {
  const Group& group = groups_[at(index)];
  const Leg& transfer = leg(move, group.owner);
  if (transfer.flow_class == kNoFlow || transfer.bytes == 0.0) return last_byte(move, index);
  if (engine_.now() < now_) engine_.advance_to(now_);  // which shares all rates anew
  engine_.add(transfer.flow_class, transfer.bytes * static_cast<double>(group.samples.size()),
              (std::int64_t{move} << 48) | index);
}

void Simulator::flow_ended(std::int64_t id) {
  const std::int64_t move = id >> 48;
  if (move < kMoves) last_byte(static_cast<Move>(move), static_cast<std::int32_t>(id & 0xffffffff));
}

// The slot is free again; the data arrives one latency later, but before what the free slot lets begin.
void Simulator::last_byte(Move move, std::int32_t index) {
  const std::int32_t owner = groups_[at(index)].owner;
  const double latency = leg(move, owner).latency;
  if (move == kArriving) --pools_[at(owner)].transfers;
  if (move == kCopying) {
    --workers_[at(owner)].copies;
    update(at(owner));
  }
  if (latency > 0.0) {
    later(now_ + latency, kEnds + move, index);
  } else {
    end_move(move, index);
  }
  if (move == kArriving) send(at(owner));
  if (move == kCopying) form(at(scenario_.workers[at(owner)].pool));
}

void Simulator::end_move(Move move, std::int32_t group) {
  if (move == kArriving) return landed(group);
  if (move == kCopying) return copied(group);
  done(group);
}

void Simulator::copied(std::int32_t index) {
  Group& group = groups_[at(index)];
  group.copied = now_;
  const std::size_t gpu = at(scenario_.workers[at(group.owner)].gpu);
  gpus_[gpu].ready.push(index);
  start_gpu(gpu);
}

// Starts what waits for the GPU while one more may run, in the order in which it came.
void Simulator::start_gpu(std::size_t g) {
  GpuState& gpu = gpus_[g];
  const auto may_start = [&] {
    if (gpu.ready.empty()) return false;
    return gpu.running.size() < at(scenario_.workers[at(groups_[at(gpu.ready.front())].owner)].streams);
  };
  if (!may_start()) return;
  advance_gpu(gpu);
  while (may_start()) {
    const std::int32_t index = gpu.ready.pop();
    Group& group = groups_[at(index)];
    const std::vector<double>& shares = scenario_.workers[at(group.owner)].shares;
    if (gpu.running.empty()) gpu.since = now_;
    gpu.running.push_back(index);
    group.started = now_;
    group.left = service_time(group);
    group.share = shares.empty() ? 1.0 : shares[group.samples.size() - 1];
  }
  reschedule(gpu);
}

// What of the speed that it has alone each running batch keeps: all of them together use no more than the GPU.
double Simulator::gpu_speed(const GpuState& gpu) const {
  double used = 0.0;
  for (const std::int32_t index : gpu.running) used += groups_[at(index)].share;
  return used > 1.0 ? 1.0 / used : 1.0;
}

void Simulator::advance_gpu(GpuState& gpu) {
  const double done = (now_ - gpu.advanced) * gpu_speed(gpu);
  for (const std::int32_t index : gpu.running) groups_[at(index)].left -= done;
  gpu.advanced = now_;
}

// An end that no longer holds is passed over when it comes (see served).
void Simulator::reschedule(const GpuState& gpu) {
  const double speed = gpu_speed(gpu);
  for (const std::int32_t index : gpu.running) {
    Group& group = groups_[at(index)];
    const double due = now_ + std::max(0.0, group.left) / speed;
    if (due == group.due) continue;
    group.due = due;
    later(due, kServed, index);
  }
}

// Stated seconds of a batch, or a constant and an exponential part whose mean and variation are the stated ones.
double Simulator::service_time(const Group& group) {
  const Worker& worker = scenario_.workers[at(group.owner)];
  const std::size_t s = at(scenario_.pools[at(worker.pool)].service);
  const Service& service = scenario_.services[s];
  const double stated = worker.times[group.samples.size() - 1];
  const double own = service.variation, each = service.sample_variation;
  if (own == 0.0 && each == 0.0) return stated;
  const auto samples = static_cast<double>(group.samples.size());
  const double sample = worker.times.back() / static_cast<double>(worker.times.size());
  const double deviation = std::sqrt(own * own * stated * stated + each * each * sample * sample * samples);
  const double random = std::min(stated, deviation);
  return stated - random + services_[s].times.exponential(random);
}

void Simulator::served(std::int32_t index) {
  Group& group = groups_[at(index)];
  if (group.due != now_) return;  // it was slowed or sped up since
  group.due = -1.0;
  group.served = now_;
  const std::size_t w = at(group.owner);
  const std::size_t g = at(scenario_.workers[w].gpu);
  advance_gpu(gpus_[g]);
  std::erase(gpus_[g].running, index);
  if (gpus_[g].running.empty()) out_.busy[g] += now_ - gpus_[g].since;
  start_gpu(g);
  reschedule(gpus_[g]);
  --workers_[w].held;
  update(w);
  form(at(scenario_.workers[w].pool));
  set_off(kReturning, index);
}

void Simulator::done(std::int32_t index) {
  const Group& group = groups_[at(index)];
  const Worker& worker = scenario_.workers[at(group.owner)];
  const std::size_t s = at(scenario_.pools[at(worker.pool)].service);
  ServiceState& service = services_[s];
  ServiceOutcome& out = out_.services[s];
  const auto samples = static_cast<std::int64_t>(group.samples.size());
  ++out.batches;
  out.samples += samples;
  out.last_answer = now_;
  in_flight_ -= samples;
  service.pool_loads.answered(at(places_[at(worker.pool)]), samples);
  keep_trace(group);
  count(group, s);
  free_groups_.push_back(index);
}

// Latencies and stages of the queries that a batch answers; the next query where one follows the other.
void Simulator::count(const Group& group, std::size_t s) {
  const Worker& worker = scenario_.workers[at(group.owner)];
  const Leg& arrive = scenario_.pools[at(worker.pool)].arrive;
  ServiceOutcome& out = out_.services[s];
  const Service& service = scenario_.services[s];
  const double copy = std::min(alone(worker.copy, group.samples.size()), group.copied - group.formed);
  const bool moves = arrive.flow_class != kNoFlow;
  std::int32_t following = 0;
  for (const Sample& sample : group.samples) {
    if (sample.query >= 0 && --queries_[at(sample.query)].left > 0) continue;
    if (sample.query >= 0) free_queries_.push_back(sample.query);
    ++out.answered;
    following += service.arrivals == Arrivals::kOneByOne && now_ < scenario_.duration;
    if (sample.scheduled < scenario_.skip) continue;
    const double latency = now_ - sample.scheduled;
    ++out.counted;
    out.sum += latency;
    out.late += latency > service.bound;
    const double came = moves ? std::min(alone(arrive, 1), sample.landed - sample.began) : sample.landed - sample.began;
    const double stages[kStages] = {sample.began - sample.scheduled,
                                    came,
                                    sample.landed - sample.began - came,
                                    group.formed - sample.landed,
                                    copy,
                                    group.copied - group.formed - copy,
                                    group.started - group.copied,
                                    group.served - group.started,
                                    now_ - group.served};
    out.latency.add_stages(out.latency.add(latency), stages, 1.0);
  }
  if (service.late_limit >= 0 && out.late > service.late_limit) out_.ended_early = true;
  for (; following > 0; --following) issue(s, now_);
}

void Simulator::keep_trace(const Group& group) {
  if (traced_ >= scenario_.trace) return;
  TracedBatch kept{group.owner, group.formed, group.copied, group.started, group.served, now_, {}, {}};
  for (const Sample& sample : group.samples) {
    kept.scheduled.push_back(sample.scheduled);
    kept.landed.push_back(sample.landed);
  }
  traced_ += static_cast<std::int64_t>(group.samples.size());
  out_.trace.push_back(std::move(kept));
}

}  // namespace lanewise::serve
