#include "cuda/run.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "host/failure.hpp"

namespace lanewise::cuda {

namespace {

std::vector<std::pair<const Gpu*, CUstream>> handles_of(const std::vector<std::unique_ptr<CopyStream>>& streams) {
  std::vector<std::pair<const Gpu*, CUstream>> handles;
  handles.reserve(streams.size());
  for (const auto& stream : streams) handles.emplace_back(&stream->gpu(), stream->handle());
  return handles;
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

// Flows that one kernel copies in both directions: the flow into the GPU, and the one back.
std::map<std::size_t, std::size_t> backs_of(const std::vector<Flow>& flows) {
  std::map<std::size_t, std::size_t> backs;
  std::set<std::size_t> paired;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (!flows[i].duplex || flows[i].src != kHost) continue;
    for (std::size_t k = 0; k < flows.size() && !backs.contains(i); ++k) {
      const bool fits = flows[i].sm && flows[k].sm && flows[k].duplex && flows[k].src == flows[i].dst &&
                        flows[k].dst == kHost && flows[k].bytes == flows[i].bytes && flows[k].copies == flows[i].copies;
      if (fits && paired.insert(k).second) backs.emplace(i, k);
    }
  }
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (!flows[i].duplex || backs.contains(i) || paired.contains(i)) continue;
    throw host::Failure(flows[i].name() + ": no opposite flow for its kernel", "ask for as many bytes back");
  }
  return backs;
}

}  // namespace

Run::Run(std::shared_ptr<Engine> engine, std::vector<std::unique_ptr<CopyStream>> streams)
    : engine_(std::move(engine)), streams_(std::move(streams)) {
  if (streams_.empty()) throw host::Failure("no flow to measure", "name at least one");
  gate_ = &engine_->gate(streams_.front()->gpu());
  set_peers();
  const Settled settled(*gate_, handles_of(streams_));
  gate_->open();
  for (const auto& stream : streams_) {
    const Current current(*stream->gpu().context());
    gate_->hold(stream->gpu(), stream->handle());
    stream->start();
    stream->queue(0);
    stream->record(0);
    stream->finish();
  }
}

std::vector<std::vector<double>> Run::run() {
  const std::scoped_lock turn(engine_->turn());
  check_open();
  set_peers();
  queue_all();
  const bool staged = std::ranges::any_of(streams_, [](const auto& stream) { return stream->staged(); });
  if (!gate_->in_time() && staged && engine_->holds_staged()) {
    engine_->release_staged();
    queue_all();
  }
  gate_->check_in_time();
  std::vector<std::vector<double>> timestamps;
  timestamps.reserve(streams_.size());
  for (const auto& stream : streams_) timestamps.push_back(stream->timestamps());
  return timestamps;
}

// One item of each stream in turn, so that no stream's queue is far behind when the gate opens.
void Run::queue_all() {
  gate_->close();
  const Settled settled(*gate_, handles_of(streams_));
  int most = 0;
  for (const auto& stream : streams_) {
    const Current current(*stream->gpu().context());
    gate_->hold(stream->gpu(), stream->handle());
    stream->start();
    most = std::max(most, stream->items());
  }
  for (int item = 0; item < most; ++item) {
    for (const auto& stream : streams_) {
      if (item >= stream->items()) continue;
      if ((item + 1) * stream->entries() > kMostHeld) gate_->open();
      const Current current(*stream->gpu().context());
      stream->queue(item);
      stream->record(item);
    }
  }
  gate_->open();
  for (const auto& stream : streams_) stream->finish();
}

void Run::verify() {
  const std::scoped_lock turn(engine_->turn());
  check_open();
  set_peers();
  std::random_device seeds;
  for (const auto& stream : streams_) stream->verify((static_cast<unsigned long long>(seeds()) << 32) | seeds());
}

std::vector<std::map<int, std::size_t>> Run::pages() const {
  const std::scoped_lock turn(engine_->turn());
  check_open();
  std::vector<std::map<int, std::size_t>> pages;
  pages.reserve(streams_.size());
  for (const auto& stream : streams_) pages.push_back(stream->pages());
  return pages;
}

void Run::resize(const std::vector<int>& timestamps, const std::vector<int>& per_timestamp) {
  const std::scoped_lock turn(engine_->turn());
  check_open();
  if (timestamps.size() != streams_.size() || (!per_timestamp.empty() && per_timestamp.size() != streams_.size())) {
    throw host::Failure(
        std::to_string(timestamps.size()) + " numbers of copies for " + std::to_string(streams_.size()) + " flows",
        "give one a flow");
  }
  for (std::size_t i = 0; i < timestamps.size(); ++i) {
    streams_[i]->resize(timestamps[i], per_timestamp.empty() ? 1 : per_timestamp[i]);
  }
}

void Run::close() {
  if (engine_ == nullptr) return;
  const std::scoped_lock turn(engine_->turn());
  streams_.clear();
}

void Run::check_open() const {
  if (streams_.empty()) throw host::Failure("this run is closed", "prepare it anew");
}

void Run::set_peers() {
  for (const auto& stream : streams_) stream->set_peers(*engine_);
}

std::unique_ptr<Run> prepare(const std::shared_ptr<Engine>& engine, const std::vector<Flow>& flows) {
  const std::scoped_lock turn(engine->turn());
  check_peers(flows);
  const std::map<std::size_t, std::size_t> backs = backs_of(flows);
  std::map<int, int> kernels;  // that run at once, by GPU
  for (const Flow& flow : flows) kernels[flow.starter()] += flow.sm ? 1 : 0;
  for (const auto& [first, back] : backs) --kernels[flows[back].starter()];
  std::vector<std::unique_ptr<CopyStream>> streams;
  std::vector<FlowStream*> flow_streams;
  for (const Flow& flow : flows) {
    auto stream = std::make_unique<FlowStream>(*engine, flow, std::max(1, kernels[flow.starter()]));
    flow_streams.push_back(stream.get());
    streams.push_back(std::move(stream));
  }
  for (const auto& [first, back] : backs) flow_streams[first]->carry(*flow_streams[back]);
  return std::make_unique<Run>(engine, std::move(streams));
}

}  // namespace lanewise::cuda
