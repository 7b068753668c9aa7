// Inference services under load, event by event, over links shared by the flow simulation.
// A sample's path: it is scheduled, sent to a pool, brought there (arrive), waits for a batch, is copied with it, waits
// for the GPU, is served and returns. Latency counts from the scheduled time: MLPerf inference rules, LoadGen.
#pragma once

#include <memory>

#include "serve/outcome.hpp"
#include "serve/pool_loads.hpp"
#include "serve/random.hpp"
#include "serve/ring.hpp"
#include "serve/scenario.hpp"
#include "serve/stable_vector.hpp"
#include "sim/flowsim.hpp"

namespace lanewise::serve {

class Simulator {
 public:
  // Throws BadInput where the scenario names what is not there, or has times or sizes without meaning.
  Simulator(const std::shared_ptr<const sim::Network>& network, Scenario scenario);

  // Runs to the end. Memory grows with the samples in flight, not with the run. `stop` is called every few
  // thousand events; when it returns true the run ends with what it has.
  template <typename Stop>
  Outcome run(const Stop& stop) {
    begin();
    while (!finished() && !stop()) turn(4096);
    return end();
  }

 private:
  // The transfers of a query.
  enum Move : std::int64_t { kArriving, kCopying, kReturning, kMoves };
  // Timed events: beginnings and ends of moves are kBegins + move and kEnds + move.
  static constexpr std::int64_t kBegins = 0, kEnds = kMoves, kServed = 2 * kMoves, kTimeout = kServed + 1,
                                kBackground = kServed + 2, kStep = kServed + 3;

  struct Sample {
    double scheduled, began, landed;
    std::int32_t query;  // of several samples: its place in queries_; -1 else
  };
  struct Query {
    double scheduled;
    std::int32_t left;
  };
  // Samples that travel together: a batch, or one transfer of arriving samples.
  struct Group {
    std::int32_t owner = 0;  // worker of a batch, pool of arriving samples
    double formed = 0.0, copied = 0.0, started = 0.0, served = 0.0;
    // On the GPU: what it uses of it, s that it would still take alone, when it ends as things are (-1: not there).
    double share = 1.0, left = 0.0, due = -1.0;
    std::vector<Sample> samples;
  };
  struct PoolState {
    Ring<Sample> arriving;
    Ring<Sample> waiting;
    std::int32_t transfers = 0;  // of `arriving` under way
    std::int32_t open = 0;       // workers with a free slot and buffer
    double timer;                // when its time-out is looked at; infinity: not set
    std::vector<std::int32_t> workers;
    std::size_t turn = 0;  // the worker that is next among equals
  };
  struct WorkerState {
    std::int32_t copies = 0;
    std::int32_t held = 0;  // buffers
    bool open = true;
    double free_since = 0.0;  // when it last became open or took a batch
  };
  struct GpuState {
    Ring<std::int32_t> ready;
    std::vector<std::int32_t> running;
    double since = 0.0;     // when the first of those running began
    double advanced = 0.0;  // until when what they have left is counted down
  };
  struct ServiceState {
    Random arrivals, choices, times;
    PoolLoads pool_loads;
    std::vector<std::int32_t> pools;
    std::size_t turn = 0;
    std::int64_t left = 0;  // samples not yet taken from the source, kAtOnce only
  };

  void begin();
  bool finished() const noexcept;
  void turn(std::size_t events);
  Outcome end();

  void arrivals_until(double time);
  void issue(std::size_t service, double scheduled);
  void schedule_arrival(std::size_t service);
  std::size_t add_sample(std::size_t service, const Sample& sample);
  void move_on(std::size_t pool);
  void supply(std::size_t pool);
  std::size_t choose_pool(std::size_t service);

  void send(std::size_t pool);
  void landed(std::int32_t group);
  void form(std::size_t pool);
  std::size_t pick_worker(PoolState& pool, bool in_turn);
  std::size_t any_open_worker(const PoolState& pool, Random& choices);
  struct Due {
    double time;
    std::size_t worker;
  };
  Due first_due(const PoolState& pool, double timeout) const;
  void wait_until(std::size_t pool, double due);
  void copied(std::int32_t group);
  void start_gpu(std::size_t gpu);
  double gpu_speed(const GpuState& gpu) const;
  void advance_gpu(GpuState& gpu);
  void reschedule(const GpuState& gpu);
  double service_time(const Group& group);
  void served(std::int32_t group);
  void done(std::int32_t group);
  void count(const Group& group, std::size_t service);
  void keep_trace(const Group& group);

  const Leg& leg(Move move, std::int32_t owner) const;
  void set_off(Move move, std::int32_t group);
  void begin_move(Move move, std::int32_t group);
  void last_byte(Move move, std::int32_t group);
  void end_move(Move move, std::int32_t group);
  void flow_ended(std::int64_t id);
  void handle(std::int64_t id);
  void background(std::size_t index);
  void update(std::size_t worker);
  void end_step(std::int64_t number);

  std::int32_t take_group(std::int32_t owner);
  void later(double time, std::int64_t what, std::int64_t index) { events_.push({time, (what << 48) | index}); }
  static double alone(const Leg& leg, std::size_t samples) {
    const auto count = static_cast<double>(samples);
    return leg.setup + leg.setup_each * count + leg.latency + leg.bytes * count / leg.alone;
  }

  Scenario scenario_;
  sim::FlowEngine engine_;
  std::size_t classes_;
  double now_ = 0.0;
  sim::TagHeap events_;
  sim::TagHeap arrivals_;  // the next of each service
  std::vector<ServiceState> services_;
  std::vector<PoolState> pools_;
  std::vector<std::int32_t> places_;  // of each pool among its service's
  std::vector<WorkerState> workers_;
  std::vector<GpuState> gpus_;
  StableVector<Group> groups_;
  std::vector<std::int32_t> free_groups_;
  std::vector<Query> queries_;
  std::vector<std::int32_t> free_queries_;
  std::int64_t in_flight_ = 0;  // samples
  std::int64_t traced_ = 0;
  double step_ = 0.0;
  std::vector<double> moved_before_, busy_before_;
  Outcome out_;
};

// Checks a scenario against a network; throws BadInput naming what is wrong.
void check(const sim::Network& network, const Scenario& scenario);

}  // namespace lanewise::serve
