// Finite transfers over shared resources, event by event.
// All flows of a class get the same rate, so a class keeps one virtual clock (bytes served to each of its flows) and a
// heap of the clock readings at which its flows end; an event solves the rates of those classes that it can change,
// however many flows overlap. The virtual clock is that of fair queueing: Demers, Keshav and Shenker, SIGCOMM 1989,
// section 2.
// The members of an aggregate (aggregates.hpp) run at their weights times its level, which most events change. So the
// aggregate keeps such a clock as well, V = the integral of its level over time (bytes per weight), and its members'
// clocks run on V in place of time: at a speed that never changes, the weight. The V at which the next flow of a member
// ends stays what it is as well, and an event costs the same however many members there are.
// Of the classes of one sender that have flows one has its turn: the solver knows no flow of the others (network.hpp,
// TurnRule), and a turn ends as a flow does, at a reading of the virtual clock.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "sim/heap.hpp"
#include "sim/maxmin.hpp"

namespace lanewise::sim {

// The rates that hold from `time` on, for one flow of each class; 0 where a class has no flow.
struct RateChange {
  double time;
  std::vector<double> rates;
};

// Steps through transfers. Use: add flows at now(); ask next_event_time(); then either advance() to that end, or
// advance_to() an earlier time at which more flows begin. Ids are the caller's and only order ties.
class FlowEngine {
 public:
  explicit FlowEngine(std::shared_ptr<const Network> network);

  double now() const noexcept { return now_; }
  std::size_t active() const noexcept { return active_; }

  // Begins a transfer of `bytes` at now(). Throws BadInput for an unknown class or bytes not in 0 .. 1e60.
  void add(std::int32_t flow_class, double bytes, std::int64_t id);

  // When the next transfer, or a turn, ends; infinity when none is under way.
  double next_event_time();

  // Moves to next_event_time() and returns the ids that end then, ascending; empty when idle, and where but a turn
  // ends. Valid until the next call.
  std::span<const std::int64_t> advance();

  // Moves the clock without ending anything. Throws BadInput if `time` is before now() or after next_event_time().
  void advance_to(double time);

  // The rate of one flow of a class from now() on, B/s.
  double rate(std::int32_t flow_class);

  // What bounds that rate: the index of a resource, kOwnCap, or kIdle if the class has no flow or waits for its turn.
  // Costs what the users of its resources are.
  std::int32_t limit(std::int32_t flow_class);

  // What all flows of a class together, finished ones included, have moved up to now(), bytes.
  double moved(std::int32_t flow_class) const;

  // Keeps the first `most` changes of rates from here on.
  void keep_rates(std::size_t most) { keep_ = most; }
  const std::vector<RateChange>& rates() const noexcept { return changes_; }
  bool rates_complete() const noexcept { return complete_; }

 private:
  struct ClassClock {             // one class
    double served = 0.0;          // virtual clock at `since`: bytes
    double since = 0.0;           // a time; of a member: a reading of its aggregate's clock
    double rate = 0.0;            // per unit of that: of a member its weight
    double moved = 0.0;           // by all its flows up to `since`
    std::size_t ends = 0;         // since the clock's origin was last moved
    std::int32_t aggregate = -1;  // whose member it is
    std::int32_t place = 0;       // in the aggregate that it may be a member of
    std::int32_t sender = -1;     // whose classes take turns
    bool touched = false;         // in touched_
    double turn_end = kInfinity;  // virtual clock at the end of its turn; infinity: it has none, or no others wait
    TagHeap flows;
    double next() const { return std::min(flows.top().tag, turn_end); }
  };
  struct AggregateClock {
    double served = 0.0;  // V at time `since`
    double since = 0.0;
    double level = 0.0;
    std::size_t ends = 0;  // since the clock's origin was last moved
    bool touched = false;  // in touched_aggregates_
    Tournament due;        // V when the next flow of each member ends
  };

  void touch(std::size_t flow_class);
  void touch_aggregate(std::size_t aggregate);
  void settle();
  void set_rate(std::size_t flow_class);
  void set_level(std::size_t aggregate);
  void set_due(std::size_t flow_class);
  void set_due(std::size_t flow_class, double when);
  void set_aggregate_due(std::size_t aggregate);
  void change_clock(std::size_t flow_class);
  double reading(const AggregateClock& clock) const;
  double reading(const ClassClock& clock) const;
  double base(const ClassClock& clock) const;
  void turn_clock(ClassClock& clock, double reading) const;
  void end_flows(std::size_t flow_class);
  void queue_for_turn(std::size_t flow_class);
  void pass_turn(std::size_t flow_class);
  void begin_turn(std::size_t flow_class, double bytes);
  bool waits(const ClassClock& clock) const;
  void end_members(std::size_t aggregate);
  void move_origin(std::size_t aggregate);
  void record();

  std::shared_ptr<const Network> network_;
  MaxMin solver_;
  std::vector<ClassClock> clocks_;  // by class
  std::vector<AggregateClock> aggregates_;
  std::vector<std::deque<std::size_t>> senders_;  // of each its classes that have flows; the first has its turn
  Tournament due_;                    // when the next flow of each class ends that is no member; then of each aggregate
  std::vector<std::size_t> touched_;  // classes whose flows changed since the last settle()
  std::vector<std::size_t> touched_aggregates_;  // whose members' ends, or whose levels, changed
  std::vector<std::size_t> ending_, places_;     // scratch of advance()
  std::vector<std::int64_t> ended_;
  std::vector<std::int64_t> instant_;  // flows of no bytes, waiting for advance()
  std::vector<RateChange> changes_;
  std::size_t keep_ = 0;
  bool complete_ = true;
  bool changed_ = false;  // some rate since the last record()
  std::size_t active_ = 0;
  double now_ = 0.0;
};

// Transfers as columns of one length. A transfer begins `start` seconds after the last of those it waits for has ended
// (after 0 if it waits for none). Transfers of one `queue` then run one at a time, in the order in which they could
// have begun; -1 is no queue.
struct Transfers {
  std::span<const std::int32_t> flow_class;
  std::span<const double> bytes;
  std::span<const double> start;
  std::span<const std::int32_t> queue;    // empty: no transfer has one
  std::span<const std::int32_t> waiting;  // a transfer, once for each that it waits for;
  std::span<const std::int32_t> awaited;  // and that one
};

struct Outcome {
  std::vector<double> finishes;  // of each transfer, seconds
  std::vector<RateChange> rates;
  bool rates_complete;
};

// Runs all transfers to their ends. Throws BadInput for unknown classes, negative or unusable sizes and starts, and for
// transfers that wait for each other.
Outcome run_flows(std::shared_ptr<const Network> network, const Transfers& transfers, std::size_t keep_rates);

}  // namespace lanewise::sim
