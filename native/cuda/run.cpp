#include "cuda/run.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "host/failure.hpp"

namespace lanewise::cuda {

namespace {

std::vector<std::pair<const Gpu*, CUstream>> streams_of(const std::vector<std::unique_ptr<Lane>>& lanes) {
  std::vector<std::pair<const Gpu*, CUstream>> streams;
  for (const auto& lane : lanes) streams.emplace_back(&lane->gpu(), lane->stream());
  return streams;
}

// Two flows between the same GPUs need the same peer access.
void check_peers(const std::vector<Flow>& flows) {
  std::map<std::pair<int, int>, bool> p2p;
  for (const Flow& flow : flows) {
    if (!flow.between_gpus()) continue;
    const auto [at, is_new] = p2p.try_emplace(std::minmax(flow.src, flow.dst), flow.p2p);
    if (is_new || at->second == flow.p2p) continue;
    throw host::Failure(flow.name() + ": P2P on and off between the same GPUs at once", "measure one after the other");
  }
}

// Flows that one kernel copies both ways: the way into the GPU, and its way back.
std::map<std::size_t, std::size_t> backs_of(const std::vector<Flow>& flows) {
  std::map<std::size_t, std::size_t> backs;
  std::set<std::size_t> taken;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (!flows[i].both || flows[i].src != kHost) continue;
    for (std::size_t k = 0; k < flows.size() && !backs.contains(i); ++k) {
      const bool fits = flows[i].sm && flows[k].sm && flows[k].both && flows[k].src == flows[i].dst &&
                        flows[k].dst == kHost && flows[k].bytes == flows[i].bytes &&
                        flows[k].copies == flows[i].copies;
      if (fits && taken.insert(k).second) backs.emplace(i, k);
    }
  }
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (!flows[i].both || backs.contains(i) || taken.contains(i)) continue;
    throw host::Failure(flows[i].name() + ": no flow the other way for its kernel", "ask for as many bytes back");
  }
  return backs;
}

}  // namespace

Run::Run(std::shared_ptr<Engine> engine, std::vector<std::unique_ptr<Lane>> lanes)
    : engine_(std::move(engine)), lanes_(std::move(lanes)) {
  if (lanes_.empty()) throw host::Failure("no flow to measure", "name at least one");
  gate_ = &engine_->gate(lanes_.front()->gpu());
  set_peers();
  const Settled settled(*gate_, streams_of(lanes_));
  gate_->open();
  for (const auto& lane : lanes_) {
    const Current current(*lane->gpu().context());
    gate_->hold(lane->gpu(), lane->stream());
    lane->start();
    lane->queue(0);
    lane->mark(0);
    lane->finish();
  }
}

std::vector<std::vector<double>> Run::run() {
  const std::scoped_lock turn(engine_->turn());
  check_open();
  set_peers();
  queue_all();
  const bool staged = std::ranges::any_of(lanes_, [](const auto& lane) { return lane->staged(); });
  if (!gate_->in_time() && staged && engine_->holds_staged()) {
    engine_->let_staged_go();
    queue_all();
  }
  gate_->check_in_time();
  std::vector<std::vector<double>> marks;
  for (const auto& lane : lanes_) marks.push_back(lane->marks());
  return marks;
}

// One item of each lane in turn, so that no lane's queue is far behind when the gate opens.
void Run::queue_all() {
  gate_->close();
  const Settled settled(*gate_, streams_of(lanes_));
  int most = 0;
  for (const auto& lane : lanes_) {
    const Current current(*lane->gpu().context());
    gate_->hold(lane->gpu(), lane->stream());
    lane->start();
    most = std::max(most, lane->items());
  }
  for (int item = 0; item < most; ++item) {
    for (const auto& lane : lanes_) {
      if (item >= lane->items()) continue;
      if ((item + 1) * lane->entries() > kMostHeld) gate_->open();
      const Current current(*lane->gpu().context());
      lane->queue(item);
      lane->mark(item);
    }
  }
  gate_->open();
  for (const auto& lane : lanes_) lane->finish();
}

void Run::verify() {
  const std::scoped_lock turn(engine_->turn());
  check_open();
  set_peers();
  std::random_device seeds;
  for (const auto& lane : lanes_) lane->verify((static_cast<unsigned long long>(seeds()) << 32) | seeds());
}

std::vector<std::map<int, std::size_t>> Run::pages() const {
  const std::scoped_lock turn(engine_->turn());
  check_open();
  std::vector<std::map<int, std::size_t>> pages;
  for (const auto& lane : lanes_) pages.push_back(lane->pages());
  return pages;
}

void Run::resize(const std::vector<int>& marks, const std::vector<int>& each) {
  const std::scoped_lock turn(engine_->turn());
  check_open();
  if (marks.size() != lanes_.size() || (!each.empty() && each.size() != lanes_.size())) {
    throw host::Failure(std::to_string(marks.size()) + " numbers of copies for " + std::to_string(lanes_.size()) +
                            " flows", "give one a flow");
  }
  for (std::size_t i = 0; i < marks.size(); ++i) lanes_[i]->resize(marks[i], each.empty() ? 1 : each[i]);
}

void Run::close() {
  if (engine_ == nullptr) return;
  const std::scoped_lock turn(engine_->turn());
  lanes_.clear();
}

void Run::check_open() const {
  if (lanes_.empty()) throw host::Failure("this run is closed", "prepare it anew");
}

void Run::set_peers() {
  for (const auto& lane : lanes_) lane->set_peers(*engine_);
}

std::unique_ptr<Run> prepare(const std::shared_ptr<Engine>& engine, const std::vector<Flow>& flows) {
  const std::scoped_lock turn(engine->turn());
  check_peers(flows);
  const std::map<std::size_t, std::size_t> backs = backs_of(flows);
  std::map<int, int> kernels;  // side by side, by GPU
  for (const Flow& flow : flows) kernels[flow.starter()] += flow.sm ? 1 : 0;
  for (const auto& [first, back] : backs) --kernels[flows[back].starter()];
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<FlowLane*> of_flows;
  for (const Flow& flow : flows) {
    auto lane = std::make_unique<FlowLane>(*engine, flow, std::max(1, kernels[flow.starter()]));
    of_flows.push_back(lane.get());
    lanes.push_back(std::move(lane));
  }
  for (const auto& [first, back] : backs) of_flows[first]->take_along(*of_flows[back]);
  return std::make_unique<Run>(engine, std::move(lanes));
}

}  // namespace lanewise::cuda
