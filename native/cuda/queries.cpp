#include "cuda/queries.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <random>

#include "cuda/pattern.hpp"
#include "host/failure.hpp"

namespace lanewise::cuda {

namespace {

const Queries& checked(const Queries& queries) {
  const auto refuse = [](const std::string& why, const std::string& hint) { throw host::Failure(why, hint); };
  if (queries.bytes == 0 || queries.bytes % 16 != 0) {
    refuse("samples of " + std::to_string(queries.bytes) + " bytes", "take a multiple of 16: kernels read 16 at once");
  }
  if (queries.library == 0 || queries.library > UINT32_MAX) refuse("a library without samples", "take at least one");
  if (queries.batch < 1 || queries.batch > 65535) {
    refuse("batches of " + std::to_string(queries.batch) + " samples", "take 1 to 65,535");
  }
  if (queries.batches < 1) refuse("no batch to copy", "copy at least one");
  return queries;
}

// The library, the device's buffer and the samples picked; how a batch gets across is the derived lanes'.
class QueryLane : public Lane {
 public:
  QueryLane(Engine& engine, const Queries& queries)
      : Lane(engine.gpu(checked(queries).device), queries.batches),
        queries_(queries),
        library_(engine.pool().host(gpu().context(), queries.library * queries.bytes, queries.node)),
        buffer_(engine.pool().device(gpu().context(), batch() * queries.bytes)) {
    pick();
  }

  void resize(int items, int each) override {
    if (items < 1 || each < 1) throw host::Failure(name() + ": no batch to copy", "copy at least one");
    Lane::resize(items, each);
    each_ = each;
    pick();
  }

  int entries() const override { return each_ * calls(); }
  void queue(int item) final {
    for (int i = 0; i < each_; ++i) queue_batch(item * each_ + i);
  }

  void verify(unsigned long long seed) override {
    for (std::size_t i = 0; i < batch(); ++i) fill_host(sample(picked(0, i)), queries_.bytes, seed_of(seed, i));
    gpu().fill(buffer_->get(), batch() * queries_.bytes, ~seed);
    {
      const Current current(*gpu().context());
      queue_batch(0);
      finish();
    }
    for (std::size_t i = 0; i < batch(); ++i) {
      const std::size_t at = gpu().first_wrong(slot(i), queries_.bytes, seed_of(seed, i));
      if (at == queries_.bytes) continue;
      wrong("sample " + std::to_string(i) + " of a batch, from its byte " + std::to_string(at) + ",");
    }
  }

  std::map<int, std::size_t> pages() const override { return library_->pages(); }
  std::string name() const override {
    return Flow{.src = kHost, .dst = queries_.device, .node = queries_.node}.name() + " by " + queries_.method;
  }

 protected:
  // What a batch takes of a stream's queue.
  virtual int calls() const { return static_cast<int>(batch()); }
  virtual void queue_batch(int number) = 0;
  std::size_t batch() const { return static_cast<std::size_t>(queries_.batch); }
  std::size_t bytes() const { return queries_.bytes; }
  int node() const { return queries_.node; }
  CUdeviceptr slot(std::size_t i) const { return buffer_->get() + i * queries_.bytes; }
  std::byte* sample(std::size_t pick) const { return library_->data() + pick * queries_.bytes; }
  std::size_t picked(int number, std::size_t i) const { return picks_[static_cast<std::size_t>(number) * batch() + i]; }
  const std::vector<std::uint32_t>& picks() const { return picks_; }
  const Pinned& library() const { return *library_; }

 private:
  // Of a sample by its number, so that one picked twice in a batch has one pattern.
  unsigned long long seed_of(unsigned long long seed, std::size_t i) const { return pattern_word(seed, picked(0, i)); }

  // The same picks every time: runs differ by the method alone.
  void pick() {
    std::mt19937 random(20261122);
    picks_.resize(static_cast<std::size_t>(items()) * static_cast<std::size_t>(each_) * batch());
    for (std::uint32_t& pick : picks_) pick = static_cast<std::uint32_t>(random() % queries_.library);
  }

  Queries queries_;
  std::shared_ptr<const Pinned> library_;
  std::shared_ptr<const DeviceMemory> buffer_;
  std::vector<std::uint32_t> picks_;
  int each_ = 1;  // batches an item
};

// A copy call for each sample.
class CallsLane : public QueryLane {
 public:
  using QueryLane::QueryLane;

 protected:
  void queue_batch(int number) override {
    for (std::size_t i = 0; i < batch(); ++i) {
      const CUresult result =
          gpu().calls().cuMemcpyHtoDAsync(slot(i), sample(picked(number, i)), bytes(), stream());
      gpu().check(result, "cuMemcpyHtoDAsync");
    }
  }
};

// One call of the driver for all copies of a batch.
class BatchLane : public QueryLane {
 public:
  BatchLane(Engine& engine, const Queries& queries)
      : QueryLane(supported(engine), queries), to_(batch()), from_(batch()), sizes_(batch(), bytes()) {
    for (std::size_t i = 0; i < batch(); ++i) to_[i] = slot(i);
  }

 protected:
  void queue_batch(int number) override {
    for (std::size_t i = 0; i < batch(); ++i) from_[i] = reinterpret_cast<CUdeviceptr>(sample(picked(number, i)));
    CUmemcpyAttributes attributes{.source_order = 1, .source_hint = {}, .destination_hint = {}, .flags = 0};
    std::size_t first = 0;
    std::size_t failed = 0;
    const Calls& calls = gpu().calls();
    const CUresult result =
        calls.cuMemcpyBatchAsync_v2 != nullptr
            ? calls.cuMemcpyBatchAsync_v2(to_.data(), from_.data(), sizes_.data(), batch(), &attributes, &first, 1,
                                          stream())
            : calls.cuMemcpyBatchAsync(to_.data(), from_.data(), sizes_.data(), batch(), &attributes, &first, 1,
                                       &failed, stream());
    gpu().check(result, "cuMemcpyBatchAsync");
  }

 private:
  static Engine& supported(Engine& engine) {
    const Calls& calls = engine.driver().calls();
    if (calls.cuMemcpyBatchAsync_v2 == nullptr && calls.cuMemcpyBatchAsync == nullptr) {
      throw host::Failure("this driver has no cuMemcpyBatchAsync", "it came with CUDA 12.8 (driver 570)");
    }
    return engine;
  }

  std::vector<CUdeviceptr> to_;
  std::vector<CUdeviceptr> from_;
  std::vector<std::size_t> sizes_;
};

// A kernel reads the samples from pinned memory.
class KernelLane : public QueryLane {
 public:
  KernelLane(Engine& engine, const Queries& queries) : QueryLane(engine, queries) { upload(); }
  void resize(int items, int each) override {
    QueryLane::resize(items, each);
    upload();
  }

 protected:
  int calls() const override { return 1; }
  void queue_batch(int number) override {
    const CUdeviceptr picks = picks_.get() + static_cast<std::size_t>(number) * batch() * sizeof(std::uint32_t);
    gpu().gather(stream(), slot(0), library().seen_by(*gpu().context()), picks, bytes(),
                 static_cast<unsigned>(batch()));
  }

 private:
  void upload() {
    const std::size_t size = picks().size() * sizeof(std::uint32_t);
    picks_ = allocate(gpu().context(), size);
    const Current current(*gpu().context());
    gpu().check(gpu().calls().cuMemcpyHtoDAsync(picks_.get(), picks().data(), size, stream()), "cuMemcpyHtoDAsync");
    finish();
  }

  DeviceMemory picks_;
};

// One CPU thread gathers into one of two pinned buffers while the other is copied.
class StagedLane : public QueryLane {
 public:
  StagedLane(Engine& engine, const Queries& queries)
      : QueryLane(engine, queries),
        staging_{engine.pool().host(gpu().context(), batch() * bytes(), node()),
                 engine.pool().host(gpu().context(), batch() * bytes(), node())} {}
  // A batch waits for the one before the last, which must not be held.
  int entries() const override { return kMostHeld + 1; }
  void resize(int items, int each) override {
    if (each != 1) throw host::Failure(name() + ": a mark for several batches", "give each batch its own");
    QueryLane::resize(items, each);
  }

 protected:
  void queue_batch(int number) override {
    std::byte* to = staging_[static_cast<std::size_t>(number % 2)]->data();
    if (number >= 2) gpu().check(gpu().calls().cuEventSynchronize(marked(number - 2).get()), "cuEventSynchronize");
    for (std::size_t i = 0; i < batch(); ++i) std::memcpy(to + i * bytes(), sample(picked(number, i)), bytes());
    gpu().check(gpu().calls().cuMemcpyHtoDAsync(slot(0), to, batch() * bytes(), stream()), "cuMemcpyHtoDAsync");
  }

 private:
  std::array<std::shared_ptr<const Pinned>, 2> staging_;
};

std::unique_ptr<Lane> make_lane(Engine& engine, const Queries& queries) {
  if (queries.method == "calls") return std::make_unique<CallsLane>(engine, queries);
  if (queries.method == "batch") return std::make_unique<BatchLane>(engine, queries);
  if (queries.method == "kernel") return std::make_unique<KernelLane>(engine, queries);
  if (queries.method == "staged") return std::make_unique<StagedLane>(engine, queries);
  throw host::Failure("no method '" + queries.method + "' for queries", "take calls, batch, kernel or staged");
}

}  // namespace

std::unique_ptr<Run> prepare_queries(const std::shared_ptr<Engine>& engine, const Queries& queries) {
  const std::scoped_lock turn(engine->turn());
  std::vector<std::unique_ptr<Lane>> lanes;
  lanes.push_back(make_lane(*engine, queries));
  return std::make_unique<Run>(engine, std::move(lanes));
}

}  // namespace lanewise::cuda
