#include "cuda/lane.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cuda/gate.hpp"
#include "cuda/pattern.hpp"
#include "host/failure.hpp"
#include "host/parts.hpp"

namespace lanewise::cuda {

namespace {

void check_copies(const std::string& name, int copies) {
  if (copies >= 1 && copies <= kMostHeld) return;
  throw host::Failure(name + ": " + std::to_string(copies) + " copies",
                      "1 to " + std::to_string(kMostHeld) + " copies can wait behind the hold; run several times");
}

// Says what is wrong with a flow before anything is set up for it.
const Flow& checked(const Flow& flow) {
  const auto refuse = [&flow](const std::string& why, const std::string& hint) {
    throw host::Failure(flow.name() + ": " + why, hint);
  };
  if (flow.src < kHost || flow.dst < kHost) refuse("no such end", "GPUs count from 0, -1 is the host");
  if (flow.src == kHost && flow.dst == kHost) refuse("no GPU takes part", "measure the host's memory by itself");
  if (flow.bytes == 0) refuse("copies of 0 bytes", "copy at least a byte");
  if (flow.between_gpus() && flow.sm && !flow.p2p) {
    refuse("a kernel reaches another GPU only with P2P on", "measure with P2P on, or by copy engine");
  }
  check_copies(flow.name(), flow.copies);
  return flow;
}

std::string end_name(int where, int node) {
  if (where != kHost) return "gpu" + std::to_string(where);
  return node == host::kAnyNode ? "host0" : "host0:" + std::to_string(node);
}

// The offset of the first byte that differs from the pattern; `bytes` if none does.
std::size_t first_wrong_in(const std::byte* at, std::size_t begin, std::size_t end, unsigned long long seed) {
  std::size_t i = begin;
  for (; i + 8 <= end; i += 8) {
    const unsigned long long word = pattern_word(seed, i / 8);
    if (std::memcmp(at + i, &word, 8) != 0) break;
  }
  while (i < end && at[i] == std::byte{pattern_byte(seed, i)}) ++i;
  return i;
}

std::size_t first_wrong_on_host(const Pinned& memory, std::size_t bytes, unsigned long long seed) {
  std::atomic<std::size_t> first = bytes;
  host::in_parts(bytes, memory.node(), [&](std::size_t begin, std::size_t end) {
    const std::size_t found = first_wrong_in(memory.data(), begin, end, seed);
    if (found == end) return;
    for (std::size_t seen = first; found < seen && !first.compare_exchange_weak(seen, found);) {
    }
  });
  return first;
}

}  // namespace

void fill_host(std::byte* at, std::size_t bytes, unsigned long long seed, int node) {
  host::in_parts(bytes, node, [&](std::size_t begin, std::size_t end) {
    std::size_t i = begin;
    for (; i + 8 <= end; i += 8) {
      const unsigned long long word = pattern_word(seed, i / 8);
      std::memcpy(at + i, &word, 8);
    }
    for (; i < end; ++i) at[i] = std::byte{pattern_byte(seed, i)};
  });
}

std::string Flow::name() const {
  return end_name(src, node) + "->" + end_name(dst, node);
}

Lane::Lane(const Gpu& gpu, int items) : gpu_(gpu), stream_(make_stream(gpu.context())) {
  events_.push_back(make_event(gpu.context()));
  Lane::resize(items, 1);
}

void Lane::resize(int items, int) {
  while (events_.size() < static_cast<std::size_t>(items) + 1) events_.push_back(make_event(gpu_.context()));
  items_ = items;
}

void Lane::start() {
  gpu_.check(gpu_.calls().cuEventRecord(events_.front().get(), stream()), "cuEventRecord");
}

void Lane::mark(int item) {
  gpu_.check(gpu_.calls().cuEventRecord(marked(item).get(), stream()), "cuEventRecord");
}

void Lane::finish() const {
  const Current current(*gpu_.context());
  const CUresult result = gpu_.calls().cuStreamSynchronize(stream());
  gpu_.context()->driver().check(result, "cuStreamSynchronize", name() + ", " + gpu_.context()->name());
}

std::vector<double> Lane::marks() const {
  const Current current(*gpu_.context());
  std::vector<double> seconds;
  for (int item = 0; item < items_; ++item) {
    float milliseconds = 0;
    gpu_.check(gpu_.calls().cuEventElapsedTime(&milliseconds, events_.front().get(), marked(item).get()),
               "cuEventElapsedTime");
    seconds.push_back(static_cast<double>(milliseconds) / 1000);
  }
  return seconds;
}

void Lane::wrong(const std::string& where) const {
  throw host::Failure(name() + ": " + where + " arrived wrong",
                      "wrong data at full speed comes from settings of the IOMMU or of ACS, or from a faulty link: see "
                      "the kernel's log");
}

End::End(Engine& engine, int where, std::size_t bytes, int node, const Gpu& registrar)
    : gpu_(where == kHost ? nullptr : &engine.gpu(where)) {
  if (gpu_ == nullptr) {
    pinned_ = engine.pool().host(registrar.context(), bytes, node);
    address_ = pinned_->seen_by(*registrar.context());
  } else {
    memory_ = engine.pool().device(gpu_->context(), bytes);
    address_ = memory_->get();
  }
}

void End::fill(std::size_t bytes, unsigned long long seed) const {
  if (gpu_ == nullptr) {
    fill_host(pinned_->data(), bytes, seed, pinned_->node());
  } else {
    gpu_->fill(address_, bytes, seed);
  }
}

std::size_t End::first_wrong(std::size_t bytes, unsigned long long seed) const {
  return gpu_ == nullptr ? first_wrong_on_host(*pinned_, bytes, seed)
                         : gpu_->first_wrong(address_, bytes, seed);
}

FlowLane::FlowLane(Engine& engine, const Flow& flow, int beside)
    : Lane(engine.gpu(checked(flow).starter()), flow.copies),
      engine_(engine),
      flow_(flow),
      beside_(beside),
      from_(engine, flow.src, flow.bytes, flow.node, gpu()),
      to_(engine, flow.dst, flow.bytes, flow.node, gpu()) {}

// A staged copy takes the driver many commands: one is held at most, the others follow while it runs.
int FlowLane::entries() const {
  if (staged()) return engine_.holds_staged() ? kMostHeld : kMostHeld + 1;
  return flow_.sm ? 1 : each_;
}

void FlowLane::resize(int items, int each) {
  check_copies(name(), items);
  check_copies(name(), each);
  check_copies(name(), items * each);
  Lane::resize(items, each);
  each_ = each;
}

void FlowLane::set_peers(Engine& engine) const {
  if (flow_.between_gpus()) engine.set_peers(flow_.src, flow_.dst, flow_.p2p);
}

void FlowLane::take_along(FlowLane& back) {
  back_ = &back;
  back.taken_ = this;
}

void FlowLane::queue(int) {
  if (taken_ != nullptr) return;
  if (back_ != nullptr) {
    gpu().copy_both(stream(), to_.address(), from_.address(), back_->to_.address(), back_->from_.address(),
                    flow_.bytes, each_, beside_);
  } else if (flow_.sm) {
    gpu().copy(stream(), to_.address(), from_.address(), flow_.bytes, each_, beside_);
  } else {
    for (int i = 0; i < each_; ++i) copy();
  }
}

// By copy engine.
void FlowLane::copy() {
  const Calls& calls = gpu().calls();
  const std::size_t bytes = flow_.bytes;
  if (flow_.src == kHost) {
    gpu().check(calls.cuMemcpyHtoDAsync(to_.address(), from_.host(), bytes, stream()), "cuMemcpyHtoDAsync");
  } else if (flow_.dst == kHost) {
    gpu().check(calls.cuMemcpyDtoHAsync(to_.host(), from_.address(), bytes, stream()), "cuMemcpyDtoHAsync");
  } else if (flow_.p2p || !flow_.between_gpus()) {
    gpu().check(calls.cuMemcpyDtoDAsync(to_.address(), from_.address(), bytes, stream()), "cuMemcpyDtoDAsync");
  } else {
    gpu().check(calls.cuMemcpyPeerAsync(to_.address(), to_.context(), from_.address(), from_.context(), bytes,
                                        stream()),
                "cuMemcpyPeerAsync");
  }
}

void FlowLane::fill(unsigned long long seed) const {
  from_.fill(flow_.bytes, seed);
  to_.fill(flow_.bytes, ~seed);  // what an earlier copy left must not pass
}

void FlowLane::compare(unsigned long long seed) const {
  const std::size_t at = to_.first_wrong(flow_.bytes, seed);
  if (at < flow_.bytes) wrong("byte " + std::to_string(at) + " of " + std::to_string(flow_.bytes));
}

void FlowLane::verify(unsigned long long seed) {
  if (taken_ != nullptr) return;  // together with the other way
  const unsigned long long back_seed = pattern_word(seed, 0);
  fill(seed);
  if (back_ != nullptr) back_->fill(back_seed);
  {
    const Current current(*gpu().context());
    queue(0);
    finish();
  }
  compare(seed);
  if (back_ != nullptr) back_->compare(back_seed);
}

std::vector<double> FlowLane::marks() const {
  return taken_ != nullptr ? taken_->marks() : Lane::marks();
}

std::map<int, std::size_t> FlowLane::pages() const {
  return flow_.src == kHost ? from_.pages() : to_.pages();
}

}  // namespace lanewise::cuda
