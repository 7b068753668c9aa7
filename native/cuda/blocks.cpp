#include "cuda/blocks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <latch>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <thread>

#include "cuda/pattern.hpp"
#include "host/failure.hpp"
#include "host/guarded.hpp"
#include "host/parts.hpp"

namespace lanewise::cuda {

namespace {

using Clock = std::chrono::steady_clock;

Blocks checked(const Blocks& blocks) {
  const auto refuse = [&blocks](const std::string& why, const std::string& hint) {
    throw host::Failure(blocks.flow().name() + ": " + why, hint);
  };
  if (blocks.src < kHost || blocks.dst < kHost) refuse("no such end", "GPUs count from 0, -1 is the host");
  if (blocks.src == blocks.dst) refuse("pieces stay where they are", "name two memories, one of a GPU");
  if (blocks.bytes == 0 || blocks.bytes % 16 != 0) {
    refuse("pieces of " + std::to_string(blocks.bytes) + " bytes", "take a multiple of 16: kernels read 16 at once");
  }
  if (blocks.count == 0 || blocks.count > UINT32_MAX) refuse("no piece, or too many", "move 1 to 4 billion");
  return blocks;
}

// Any order of the places 0 to count - 1, the same for every method.
std::vector<std::uint32_t> scattered(std::size_t count, unsigned seed) {
  std::vector<std::uint32_t> places(count);
  std::iota(places.begin(), places.end(), 0);
  std::mt19937 random(seed);
  std::shuffle(places.begin(), places.end(), random);
  return places;
}

}  // namespace

// One flow's pieces; how they are posted is the derived streams'.
class BlockStream {
 public:
  BlockStream(Engine& engine, const Blocks& blocks)
      : blocks_(checked(blocks)),
        engine_(engine),
        gpu_(engine.gpu(blocks.flow().starter())),
        stream_(make_stream(gpu_.context())),
        from_(engine, blocks.src, total(), blocks.node, gpu_),
        to_(engine, blocks.dst, total(), blocks.node, gpu_),
        from_places_(scattered(blocks.count, 1)),
        to_places_(scattered(blocks.count, 2)) {}
  virtual ~BlockStream() = default;
  BlockStream(const BlockStream&) = delete;
  BlockStream& operator=(const BlockStream&) = delete;

  const Gpu& gpu() const { return gpu_; }
  std::string name() const { return blocks_.flow().name() + " by " + blocks_.method; }
  std::map<int, std::size_t> pages() const { return blocks_.src == kHost ? from_.pages() : to_.pages(); }

  void set_peers() const {
    if (blocks_.flow().between_gpus()) engine_.set_peers(blocks_.src, blocks_.dst, true);
  }

  // Moves all pieces, and waits for the last; the GPU's context is current.
  void move() {
    post();
    gpu_.context()->driver().check(calls().cuStreamSynchronize(stream()), "cuStreamSynchronize", name());
  }

  void verify(unsigned long long seed) {
    from_.fill(total(), seed);
    to_.fill(total(), ~seed);  // what an earlier run left must not pass
    {
      const Current current(*gpu_.context());
      move();
    }
    const std::size_t at = blocks_.dst == kHost ? first_wrong_on_host(seed) : first_wrong_on_gpu(seed);
    if (at == total()) return;
    throw host::Failure(
        name() + ": piece " + std::to_string(at / bytes()) + " from its byte " + std::to_string(at % bytes()) +
            " arrived wrong",
        "wrong data at full speed comes from settings of the IOMMU or of ACS, or from a faulty link: see the kernel's "
        "log");
  }

 protected:
  virtual void post() = 0;
  const Calls& calls() const { return gpu_.calls(); }
  CUstream stream() const { return stream_.get(); }
  std::size_t bytes() const { return blocks_.bytes; }
  std::size_t count() const { return blocks_.count; }
  std::size_t total() const { return blocks_.bytes * blocks_.count; }
  const Blocks& blocks() const { return blocks_; }
  const FlowEnd& from() const { return from_; }
  const FlowEnd& to() const { return to_; }
  const std::vector<std::uint32_t>& from_places() const { return from_places_; }
  const std::vector<std::uint32_t>& to_places() const { return to_places_; }
  // Where each piece lies, as copy calls take it.
  static std::vector<CUdeviceptr> addresses(const FlowEnd& end, const std::vector<std::uint32_t>& places,
                                            std::size_t bytes) {
    const CUdeviceptr base = end.host() != nullptr ? reinterpret_cast<CUdeviceptr>(end.host()) : end.address();
    std::vector<CUdeviceptr> addresses(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) addresses[i] = base + places[i] * bytes;
    return addresses;
  }

 private:
  // The place at the source of what belongs at each place of the destination.
  std::vector<std::uint32_t> sources() const {
    std::vector<std::uint32_t> sources(count());
    for (std::size_t i = 0; i < count(); ++i) sources[to_places_[i]] = from_places_[i];
    return sources;
  }

  std::size_t first_wrong_on_host(unsigned long long seed) const {
    const std::vector<std::uint32_t> source = sources();
    std::atomic<std::size_t> first = total();
    host::in_parts(total(), blocks_.node, [&](std::size_t begin, std::size_t end) {
      for (std::size_t at = begin; at < end; at += 8) {
        const unsigned long long word = pattern_word(seed, (source[at / bytes()] * bytes() + at % bytes()) / 8);
        if (std::memcmp(to_.host() + at, &word, 8) == 0) continue;
        for (std::size_t lowest = first; at < lowest && !first.compare_exchange_weak(lowest, at);) {
        }
        return;
      }
    });
    return first;
  }

  // A kernel puts the pieces back in the order of the source, as one comparison is faster than one a piece.
  std::size_t first_wrong_on_gpu(unsigned long long seed) const {
    const Gpu& holder = engine_.gpu(blocks_.dst);
    const auto ordered = engine_.pool().device(holder.context(), total());
    const DeviceMemory places = allocate(holder.context(), 2 * count() * sizeof(std::uint32_t));
    std::vector<std::uint32_t> both(from_places_);
    both.insert(both.end(), to_places_.begin(), to_places_.end());
    {
      const Current current(*holder.context());
      const Stream own = make_stream(holder.context());
      holder.check(calls().cuMemcpyHtoDAsync(places.get(), both.data(), both.size() * sizeof both[0], own.get()),
                   "cuMemcpyHtoDAsync");
      holder.copy_pieces(own.get(), {ordered->get(), places.get()},
                         {to_.address(), places.get() + count() * sizeof both[0]}, count(), bytes(), 1);
      holder.wait(own.get());
    }
    return holder.first_wrong(ordered->get(), total(), seed);
  }

  Blocks blocks_;
  Engine& engine_;
  const Gpu& gpu_;
  Stream stream_;
  FlowEnd from_;
  FlowEnd to_;
  std::vector<std::uint32_t> from_places_;
  std::vector<std::uint32_t> to_places_;
};

namespace {

class BlockCalls : public BlockStream {
 public:
  BlockCalls(Engine& engine, const Blocks& blocks)
      : BlockStream(engine, blocks),
        from_(addresses(from(), from_places(), bytes())),
        to_(addresses(to(), to_places(), bytes())) {}

 protected:
  void post() override {
    for (std::size_t i = 0; i < count(); ++i) {
      if (blocks().src == kHost) {
        const auto* at = reinterpret_cast<const void*>(from_[i]);
        gpu().check(calls().cuMemcpyHtoDAsync(to_[i], at, bytes(), stream()), "cuMemcpyHtoDAsync");
      } else if (blocks().dst == kHost) {
        auto* at = reinterpret_cast<void*>(to_[i]);
        gpu().check(calls().cuMemcpyDtoHAsync(at, from_[i], bytes(), stream()), "cuMemcpyDtoHAsync");
      } else {
        gpu().check(calls().cuMemcpyDtoDAsync(to_[i], from_[i], bytes(), stream()), "cuMemcpyDtoDAsync");
      }
    }
  }

 private:
  std::vector<CUdeviceptr> from_;
  std::vector<CUdeviceptr> to_;
};

class BlockBatch : public BlockStream {
 public:
  BlockBatch(Engine& engine, const Blocks& blocks, std::size_t most)
      : BlockStream(engine, blocks),
        most_(most),
        from_(addresses(from(), from_places(), bytes())),
        to_(addresses(to(), to_places(), bytes())),
        sizes_(count(), bytes()) {
    check_batches(engine.driver());
  }

 protected:
  void post() override { post_calls(0, count()); }

  // The pieces from `first` to `end`, in as few calls as there may be.
  void post_calls(std::size_t first, std::size_t end) {
    const std::span<CUdeviceptr> to(to_), from(from_);
    const std::span<std::size_t> sizes(sizes_);
    for (; first < end; first += most_) {
      const std::size_t some = std::min(most_, end - first);
      gpu().copy_batch(stream(), to.subspan(first, some), from.subspan(first, some), sizes.subspan(first, some));
    }
  }

  const std::size_t most_;  // of one call
  std::vector<CUdeviceptr> from_;
  std::vector<CUdeviceptr> to_;

 private:
  std::vector<std::size_t> sizes_;
};

// In the order of the addresses at the destination, as a copy engine that writes to host memory loses time where each
// piece is far from the one before. Sorting is part of every transfer, as a list of blocks is another each time: the
// list is divided by address into parts of about a call each, and a part is sorted while the ones before are copied.
class SortedBatch : public BlockBatch {
 public:
  SortedBatch(Engine& engine, const Blocks& blocks, std::size_t most)
      : BlockBatch(engine, blocks, most), pieces_(count()), by_part_(count()), ends_((count() + most - 1) / most) {
    for (std::size_t i = 0; i < count(); ++i) pieces_[i] = {to_[i], from_[i]};
  }

 protected:
  void post() override {
    divide();
    std::size_t first = 0;
    for (const std::size_t end : ends_) {
      const std::span<Piece> part = std::span(by_part_).subspan(first, end - first);
      std::ranges::sort(part, {}, &Piece::to);
      for (std::size_t i = first; i < end; ++i) {
        to_[i] = by_part_[i].to;
        from_[i] = by_part_[i].from;
      }
      post_calls(first, end);
      first = end;
    }
  }

 private:
  struct Piece {
    CUdeviceptr to = 0;
    CUdeviceptr from = 0;
  };

  // Puts the pieces into by_part_, part after part; ends_ says where each part ends there.
  void divide() {
    const auto [least, greatest] = std::ranges::minmax_element(pieces_, {}, &Piece::to);
    const CUdeviceptr lowest = least->to;
    const CUdeviceptr width = (greatest->to - lowest) / ends_.size() + 1;
    std::ranges::fill(ends_, 0);
    for (const Piece& piece : pieces_) ++ends_[(piece.to - lowest) / width];
    std::exclusive_scan(ends_.begin(), ends_.end(), ends_.begin(), std::size_t{0});  // where each begins, for now
    for (const Piece& piece : pieces_) by_part_[ends_[(piece.to - lowest) / width]++] = piece;
  }

  std::vector<Piece> pieces_;
  std::vector<Piece> by_part_;
  std::vector<std::size_t> ends_;
};

// A kernel that gets the list of places with each transfer, as a list of blocks is another each time.
class BlockKernel : public BlockStream {
 public:
  BlockKernel(Engine& engine, const Blocks& blocks, int concurrent)
      : BlockStream(engine, blocks),
        concurrent_(concurrent),
        list_(engine.pool().host(gpu().context(), list_bytes(), host::kAnyNode)),
        places_(engine.pool().device(gpu().context(), list_bytes())) {
    const std::size_t half = list_bytes() / 2;
    std::memcpy(list_->data(), to_places().data(), half);
    std::memcpy(list_->data() + half, from_places().data(), half);
  }

 protected:
  void post() override {
    const CUdeviceptr places = places_->get();
    gpu().check(calls().cuMemcpyHtoDAsync(places, list_->data(), list_bytes(), stream()), "cuMemcpyHtoDAsync");
    gpu().copy_pieces(stream(), {to().address(), places}, {from().address(), places + list_bytes() / 2}, count(),
                      bytes(), concurrent_);
  }

 private:
  std::size_t list_bytes() const { return 2 * count() * sizeof(std::uint32_t); }

  int concurrent_;
  std::shared_ptr<const Pinned> list_;
  std::shared_ptr<const DeviceMemory> places_;
};

std::unique_ptr<BlockStream> make_block_stream(Engine& engine, const Blocks& blocks, int concurrent) {
  if (blocks.method == "cuMemcpyAsync") return std::make_unique<BlockCalls>(engine, blocks);
  if (blocks.method == "cuMemcpyBatchAsync") return std::make_unique<BlockBatch>(engine, blocks, blocks.count);
  if (blocks.method == "cuMemcpyBatchAsync-256") return std::make_unique<BlockBatch>(engine, blocks, 256);
  if (blocks.method == "cuMemcpyBatchAsync-256-sorted") return std::make_unique<SortedBatch>(engine, blocks, 256);
  if (blocks.method == "kernel") return std::make_unique<BlockKernel>(engine, blocks, concurrent);
  throw host::Failure("no method '" + blocks.method + "' for pieces",
                      "take cuMemcpyAsync, cuMemcpyBatchAsync, cuMemcpyBatchAsync-256, cuMemcpyBatchAsync-256-sorted "
                      "or kernel");
}

}  // namespace

BlockRun::BlockRun(std::shared_ptr<Engine> engine, const std::vector<Blocks>& flows) : engine_(std::move(engine)) {
  const std::scoped_lock turn(engine_->turn());
  if (flows.empty()) throw host::Failure("no flow to measure", "name at least one");
  for (const Blocks& blocks : flows) {
    streams_.push_back(make_block_stream(*engine_, blocks, static_cast<int>(flows.size())));
    streams_.back()->set_peers();
  }
}

BlockRun::~BlockRun() { close(); }

std::vector<double> BlockRun::run() {
  const std::scoped_lock turn(engine_->turn());
  check_open();
  std::vector<double> seconds(streams_.size());
  std::mutex only_one;
  std::optional<host::Failure> failure;
  std::latch ready(static_cast<std::ptrdiff_t>(streams_.size()));
  Clock::time_point begun;
  std::once_flag first;
  const auto flow = [&](std::size_t i) {
    host::guarded(
        [&] {
          std::optional<Current> current;
          try {
            current.emplace(*streams_[i]->gpu().context());
          } catch (...) {
            ready.count_down();
            throw;
          }
          ready.arrive_and_wait();
          std::call_once(first, [&begun] { begun = Clock::now(); });
          streams_[i]->move();
          seconds[i] = std::chrono::duration<double>(Clock::now() - begun).count();
        },
        [&](const host::Failure& cause) {
          const std::scoped_lock lock(only_one);
          if (!failure) failure.emplace(cause);
        });
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < streams_.size(); ++i) threads.emplace_back(flow, i);
    flow(0);
  }
  if (failure) throw host::Failure(*failure);
  return seconds;
}

void BlockRun::verify() {
  const std::scoped_lock turn(engine_->turn());
  check_open();
  std::random_device seeds;
  for (const auto& stream : streams_) stream->verify((static_cast<unsigned long long>(seeds()) << 32) | seeds());
}

std::vector<std::map<int, std::size_t>> BlockRun::pages() const {
  const std::scoped_lock turn(engine_->turn());
  check_open();
  std::vector<std::map<int, std::size_t>> pages;
  for (const auto& stream : streams_) pages.push_back(stream->pages());
  return pages;
}

void BlockRun::close() {
  const std::scoped_lock turn(engine_->turn());
  streams_.clear();
}

void BlockRun::check_open() const {
  if (streams_.empty()) throw host::Failure("this run is closed", "prepare it anew");
}

}  // namespace lanewise::cuda
