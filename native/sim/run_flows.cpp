// Transfers run to their ends: each begins when those it waits for have ended and its queue is free.
#include <algorithm>
#include <deque>
#include <string>

#include "sim/flowsim.hpp"
#include "sim/heap.hpp"
#include "sim/numbers.hpp"

namespace lanewise::sim {
namespace {

void check(const Network& network, const Transfers& transfers) {
  const std::size_t size = transfers.bytes.size();
  if (transfers.flow_class.size() != size || transfers.start.size() != size ||
      (!transfers.queue.empty() && transfers.queue.size() != size)) {
    throw BadInput("classes, sizes, starts and queues of the transfers differ in number",
                   "give one of each for each transfer");
  }
  if (transfers.waiting.size() != transfers.awaited.size()) {
    throw BadInput("the columns of the dependencies differ in length", "give a transfer and the one it waits for");
  }
  for (std::size_t i = 0; i < size; ++i) {
    const std::string who = "transfer " + std::to_string(i);
    if (transfers.flow_class[i] < 0 || static_cast<std::size_t>(transfers.flow_class[i]) >= network.classes().size()) {
      throw BadInput(who + " is of flow class " + std::to_string(transfers.flow_class[i]) + ", but there are " +
                         std::to_string(network.classes().size()),
                     "flow classes count from 0 in the order they are given");
    }
    if (!(transfers.bytes[i] >= 0.0 && transfers.bytes[i] <= kLargest)) {
      throw BadInput(who + " has a size of " + show(transfers.bytes[i]) + " B", "sizes are bytes from 0 to 1e60");
    }
    if (!(transfers.start[i] >= 0.0 && transfers.start[i] <= kLargest)) {
      throw BadInput(who + " starts at " + show(transfers.start[i]) + " s", "starts are seconds from 0 to 1e60");
    }
  }
  const auto exists = [size](std::int32_t transfer) {
    return transfer >= 0 && static_cast<std::size_t>(transfer) < size;
  };
  if (!std::ranges::all_of(transfers.waiting, exists) || !std::ranges::all_of(transfers.awaited, exists)) {
    throw BadInput("a dependency names a transfer that does not exist", "transfers count from 0");
  }
}

// What a transfer waits for: others, then its start, then its turn in its queue.
class Order {
 public:
  explicit Order(const Transfers& transfers) : start_(transfers.start), queue_(transfers.queue) {
    missing_.resize(start_.size());
    for (const std::int32_t transfer : transfers.waiting) ++missing_[at(transfer)];
    if (!transfers.waiting.empty()) {
      waiters_.resize(start_.size());
      for (std::size_t i = 0; i < transfers.waiting.size(); ++i) {
        waiters_[at(transfers.awaited[i])].push_back(at(transfers.waiting[i]));
      }
    }
    for (std::size_t i = 0; i < start_.size(); ++i) {
      if (missing_[i] == 0) first_.push_back(i);
    }
    if (!std::ranges::is_sorted(first_, {}, [this](std::size_t i) { return start_[i]; })) {
      std::ranges::stable_sort(first_, {}, [this](std::size_t i) { return start_[i]; });
    }
    for (const std::int32_t queue : queue_) {
      if (queue >= 0 && at(queue) >= queues_.size()) queues_.resize(at(queue) + 1);
    }
  }

  // When the next transfer could begin; infinity if that depends on an end.
  double next() const {
    const double first = begun_ < first_.size() ? start_[first_[begun_]] : kInfinity;
    return later_.empty() ? first : std::min(first, later_.top().time);
  }

  // Gives `begin` the transfers that begin now: those due at next() whose queue is free.
  template <typename Begin>
  void begin_due(Begin begin) {
    const double time = next();
    while (next() == time) {
      const bool waited = !later_.empty() && later_.top().time == time;
      const bool at_first = begun_ < first_.size() && start_[first_[begun_]] == time;
      if (at_first && !(waited && later_.top().transfer < first_[begun_])) {
        enter(first_[begun_++], begin);
      } else {
        const std::size_t transfer = later_.top().transfer;
        later_.pop();
        enter(transfer, begin);
      }
    }
  }

  // `transfer` ended at `time`: gives `begin` the next of its queue.
  template <typename Begin>
  void end(std::size_t transfer, double time, Begin begin) {
    if (!waiters_.empty()) {
      for (const std::size_t waiter : waiters_[transfer]) {
        if (--missing_[waiter] == 0) later_.push({time + start_[waiter], waiter});
      }
    }
    if (queue_.empty() || queue_[transfer] < 0) return;
    std::deque<std::size_t>& queue = queues_[at(queue_[transfer])];
    queue.pop_front();
    if (!queue.empty()) begin(queue.front());
  }

 private:
  struct Later {
    double time;
    std::size_t transfer;
    bool before(const Later& other) const {
      return time < other.time || (time == other.time && transfer < other.transfer);
    }
  };

  template <typename Begin>
  void enter(std::size_t transfer, Begin begin) {
    if (!queue_.empty() && queue_[transfer] >= 0) {
      std::deque<std::size_t>& queue = queues_[at(queue_[transfer])];
      queue.push_back(transfer);
      if (queue.size() > 1) return;
    }
    begin(transfer);
  }

  std::span<const double> start_;
  std::span<const std::int32_t> queue_;
  std::vector<std::int32_t> missing_;              // how many it still waits for
  std::vector<std::vector<std::size_t>> waiters_;  // by what they wait for
  std::vector<std::size_t> first_;                 // those that wait for none, by start
  std::size_t begun_ = 0;                          // of those
  MinHeap<Later> later_;                           // those that waited
  std::vector<std::deque<std::size_t>> queues_;    // the first of each is running
};

}  // namespace

Outcome run_flows(std::shared_ptr<const Network> network, const Transfers& transfers, std::size_t keep_rates) {
  check(*network, transfers);
  const std::size_t size = transfers.bytes.size();
  Order order(transfers);
  FlowEngine engine(std::move(network));
  engine.keep_rates(keep_rates);
  Outcome out{std::vector<double>(size), {}, true};
  std::size_t begun = 0;
  const auto begin = [&](std::size_t i) {
    engine.add(transfers.flow_class[i], transfers.bytes[i], static_cast<std::int64_t>(i));
    ++begun;
  };
  for (;;) {
    const double due = order.next();
    if (engine.active() > 0 && engine.next_event_time() <= due) {
      for (const std::int64_t id : engine.advance()) {
        const auto i = static_cast<std::size_t>(id);
        out.finishes[i] = engine.now();
        order.end(i, engine.now(), begin);
      }
    } else if (due < kInfinity) {
      engine.advance_to(due);
      order.begin_due(begin);
    } else {
      break;
    }
  }
  if (begun < size) throw BadInput("some transfers wait for each other", "let none wait for what comes after it");
  engine.next_event_time();  // the last end sets all rates to zero: that is a change, too
  out.rates = engine.rates();
  out.rates_complete = engine.rates_complete();
  return out;
}

}  // namespace lanewise::sim
