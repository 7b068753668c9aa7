#include "cuda/copy_stream.hpp"

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
Flow checked(const Flow& flow) {
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
    const std::size_t wrong = first_wrong_in(memory.data(), begin, end, seed);
    if (wrong == end) return;
    for (std::size_t lowest = first; wrong < lowest && !first.compare_exchange_weak(lowest, wrong);) {
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

std::string Flow::name() const { return end_name(src, node) + "->" + end_name(dst, node); }

CopyStream::CopyStream(const Gpu& gpu, int items) : gpu_(gpu), stream_(make_stream(gpu.context())) {
  events_.push_back(make_event(gpu.context()));
  CopyStream::resize(items, 1);
}

void CopyStream::resize(int items, int) {
  while (events_.size() < static_cast<std::size_t>(items) + 1) events_.push_back(make_event(gpu_.context()));
  items_ = items;
}

void CopyStream::start() { gpu_.check(gpu_.calls().cuEventRecord(events_.front().get(), handle()), "cuEventRecord"); }

void CopyStream::record(int item) {
  gpu_.check(gpu_.calls().cuEventRecord(event_after(item).get(), handle()), "cuEventRecord");
}

void CopyStream::finish() const {
  const Current current(*gpu_.context());
  const CUresult result = gpu_.calls().cuStreamSynchronize(handle());
  gpu_.context()->driver().check(result, "cuStreamSynchronize", name() + ", " + gpu_.context()->name());
}

std::vector<double> CopyStream::timestamps() const {
  const Current current(*gpu_.context());
  std::vector<double> seconds;
  for (int item = 0; item < items_; ++item) {
    float milliseconds = 0;
    gpu_.check(gpu_.calls().cuEventElapsedTime(&milliseconds, events_.front().get(), event_after(item).get()),
               "cuEventElapsedTime");
    seconds.push_back(static_cast<double>(milliseconds) / 1000);
  }
  return seconds;
}

void CopyStream::fail_verification(const std::string& where) const {
  throw host::Failure(name() + ": " + where + " arrived wrong",
                      "wrong data at full speed comes from settings of the IOMMU or of ACS, or from a faulty link: see "
                      "the kernel's log");
}

FlowEnd::FlowEnd(Engine& engine, int where, std::size_t bytes, int node, const Gpu& registrar)
    : gpu_(where == kHost ? nullptr : &engine.gpu(where)) {
  if (gpu_ == nullptr) {
    pinned_ = engine.pool().host(registrar.context(), bytes, node);
    address_ = pinned_->seen_by(*registrar.context());
  } else {
    memory_ = engine.pool().device(gpu_->context(), bytes);
    address_ = memory_->get();
  }
}

void FlowEnd::fill(std::size_t bytes, unsigned long long seed) const {
  if (gpu_ == nullptr) {
    fill_host(pinned_->data(), bytes, seed, pinned_->node());
  } else {
    gpu_->fill(address_, bytes, seed);
  }
}

std::size_t FlowEnd::first_wrong(std::size_t bytes, unsigned long long seed) const {
  return gpu_ == nullptr ? first_wrong_on_host(*pinned_, bytes, seed) : gpu_->first_wrong(address_, bytes, seed);
}

FlowStream::FlowStream(Engine& engine, const Flow& flow, int concurrent)
    : CopyStream(engine.gpu(checked(flow).starter()), flow.copies),
      engine_(engine),
      flow_(flow),
      concurrent_(concurrent),
      from_(engine, flow.src, flow.bytes, flow.node, gpu()),
      to_(engine, flow.dst, flow.bytes, flow.node, gpu()) {}

// A staged copy takes the driver many commands: at most one waits at the gate, the others follow while it runs.
int FlowStream::entries() const {
  if (staged()) return engine_.holds_staged() ? kMostHeld : kMostHeld + 1;
  return flow_.sm ? 1 : per_item_;
}

void FlowStream::resize(int items, int per_item) {
  check_copies(name(), items);
  check_copies(name(), per_item);
  check_copies(name(), items * per_item);
  CopyStream::resize(items, per_item);
  per_item_ = per_item;
}

void FlowStream::set_peers(Engine& engine) const {
  if (flow_.between_gpus()) engine.set_peers(flow_.src, flow_.dst, flow_.p2p);
}

void FlowStream::carry(FlowStream& back) {
  back_ = &back;
  back.carrier_ = this;
}

void FlowStream::queue(int) {
  if (carrier_ != nullptr) return;
  if (back_ != nullptr) {
    gpu().copy_both(handle(), to_.address(), from_.address(), back_->to_.address(), back_->from_.address(), flow_.bytes,
                    per_item_, concurrent_);
  } else if (flow_.sm) {
    gpu().copy(handle(), to_.address(), from_.address(), flow_.bytes, per_item_, concurrent_);
  } else {
    for (int i = 0; i < per_item_; ++i) copy();
  }
}

// By copy engine.
void FlowStream::copy() {
  const Calls& calls = gpu().calls();
  const std::size_t bytes = flow_.bytes;
  if (flow_.src == kHost) {
    gpu().check(calls.cuMemcpyHtoDAsync(to_.address(), from_.host(), bytes, handle()), "cuMemcpyHtoDAsync");
  } else if (flow_.dst == kHost) {
    gpu().check(calls.cuMemcpyDtoHAsync(to_.host(), from_.address(), bytes, handle()), "cuMemcpyDtoHAsync");
  } else if (flow_.p2p || !flow_.between_gpus()) {
    gpu().check(calls.cuMemcpyDtoDAsync(to_.address(), from_.address(), bytes, handle()), "cuMemcpyDtoDAsync");
  } else {
    gpu().check(
        calls.cuMemcpyPeerAsync(to_.address(), to_.context(), from_.address(), from_.context(), bytes, handle()),
        "cuMemcpyPeerAsync");
  }
}

void FlowStream::fill(unsigned long long seed) const {
  from_.fill(flow_.bytes, seed);
  to_.fill(flow_.bytes, ~seed);  // what an earlier copy left must not pass
}

void FlowStream::compare(unsigned long long seed) const {
  const std::size_t at = to_.first_wrong(flow_.bytes, seed);
  if (at < flow_.bytes) fail_verification("byte " + std::to_string(at) + " of " + std::to_string(flow_.bytes));
}

void FlowStream::verify(unsigned long long seed) {
  if (carrier_ != nullptr) return;  // together with the opposite flow
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

std::vector<double> FlowStream::timestamps() const {
  return carrier_ != nullptr ? carrier_->timestamps() : CopyStream::timestamps();
}

std::map<int, std::size_t> FlowStream::pages() const { return flow_.src == kHost ? from_.pages() : to_.pages(); }

}  // namespace lanewise::cuda
