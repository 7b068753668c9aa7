#include "cuda/queries.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <random>

#include "cuda/pattern.hpp"
#include "host/failure.hpp"

namespace lanewise::cuda {

namespace {

Queries checked(const Queries& queries) {
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

// The library, the device's buffer and the samples picked; how a batch gets across is the derived streams'.
class QueryStream : public CopyStream {
 public:
  QueryStream(Engine& engine, const Queries& queries)
      : CopyStream(engine.gpu(checked(queries).device), queries.batches),
        queries_(queries),
        library_(engine.pool().host(gpu().context(), queries.library * queries.bytes, queries.node)),
        buffer_(engine.pool().device(gpu().context(), batch() * queries.bytes)) {
    pick();
  }

  void resize(int items, int per_item) override {
    if (items < 1 || per_item < 1) throw host::Failure(name() + ": no batch to copy", "copy at least one");
    CopyStream::resize(items, per_item);
    per_item_ = per_item;
    pick();
  }

  int entries() const override { return per_item_ * calls(); }
  void queue(int item) final {
    for (int i = 0; i < per_item_; ++i) queue_batch(item * per_item_ + i);
  }

  void verify(unsigned long long seed) override {
    for (std::size_t i = 0; i < batch(); ++i) fill_host(sample(pick_of(0, i)), queries_.bytes, seed_of(seed, i));
    gpu().fill(buffer_->get(), batch() * queries_.bytes, ~seed);
    {
      const Current current(*gpu().context());
      queue_batch(0);
      finish();
    }
    for (std::size_t i = 0; i < batch(); ++i) {
      const std::size_t at = gpu().first_wrong(slot(i), queries_.bytes, seed_of(seed, i));
      if (at == queries_.bytes) continue;
      fail_verification("sample " + std::to_string(i) + " of a batch, from its byte " + std::to_string(at) + ",");
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
  std::size_t pick_of(int number, std::size_t i) const {
    return picks_[static_cast<std::size_t>(number) * batch() + i];
  }
  const std::vector<std::uint32_t>& picks() const { return picks_; }
  const Pinned& library() const { return *library_; }

 private:
  // Of a sample by its number, so that one picked twice in a batch has one pattern.
  unsigned long long seed_of(unsigned long long seed, std::size_t i) const { return pattern_word(seed, pick_of(0, i)); }

  // The same picks every time: runs differ by the method alone.
  void pick() {
    std::mt19937 random(20261122);
    picks_.resize(static_cast<std::size_t>(items()) * static_cast<std::size_t>(per_item_) * batch());
    for (std::uint32_t& pick : picks_) pick = static_cast<std::uint32_t>(random() % queries_.library);
  }

  Queries queries_;
  std::shared_ptr<const Pinned> library_;
  std::shared_ptr<const DeviceMemory> buffer_;
  std::vector<std::uint32_t> picks_;
  int per_item_ = 1;  // batches an item
};

// A copy call for each sample.
class CallsStream : public QueryStream {
 public:
  using QueryStream::QueryStream;

 protected:
  void queue_batch(int number) override {
    for (std::size_t i = 0; i < batch(); ++i) {
      const CUresult result = gpu().calls().cuMemcpyHtoDAsync(slot(i), sample(pick_of(number, i)), bytes(), handle());
      gpu().check(result, "cuMemcpyHtoDAsync");
    }
  }
};

// One call of the driver for all copies of a batch.
class BatchStream : public QueryStream {
 public:
  BatchStream(Engine& engine, const Queries& queries)
      : QueryStream(supported(engine), queries), to_(batch()), from_(batch()), sizes_(batch(), bytes()) {
    for (std::size_t i = 0; i < batch(); ++i) to_[i] = slot(i);
  }

 protected:
  void queue_batch(int number) override {
    for (std::size_t i = 0; i < batch(); ++i) from_[i] = reinterpret_cast<CUdeviceptr>(sample(pick_of(number, i)));
    gpu().copy_batch(handle(), to_, from_, sizes_);
  }

 private:
  static Engine& supported(Engine& engine) {
    check_batches(engine.driver());
    return engine;
  }

  std::vector<CUdeviceptr> to_;
  std::vector<CUdeviceptr> from_;
  std::vector<std::size_t> sizes_;
};

// A kernel reads the samples from pinned memory.
class KernelStream : public QueryStream {
 public:
  KernelStream(Engine& engine, const Queries& queries) : QueryStream(engine, queries) { upload(); }
  void resize(int items, int per_item) override {
    QueryStream::resize(items, per_item);
    upload();
  }

 protected:
  int calls() const override { return 1; }
  void queue_batch(int number) override {
    const CUdeviceptr picks = picks_.get() + static_cast<std::size_t>(number) * batch() * sizeof(std::uint32_t);
    gpu().gather(handle(), slot(0), library().seen_by(*gpu().context()), picks, bytes(),
                 static_cast<unsigned>(batch()));
  }

 private:
  void upload() {
    const std::size_t size = picks().size() * sizeof(std::uint32_t);
    picks_ = allocate(gpu().context(), size);
    const Current current(*gpu().context());
    gpu().check(gpu().calls().cuMemcpyHtoDAsync(picks_.get(), picks().data(), size, handle()), "cuMemcpyHtoDAsync");
    finish();
  }

  DeviceMemory picks_;
};

// One CPU thread gathers into one of two pinned buffers while the other is copied.
class StagedStream : public QueryStream {
 public:
  StagedStream(Engine& engine, const Queries& queries)
      : QueryStream(engine, queries),
        staging_{engine.pool().host(gpu().context(), batch() * bytes(), node()),
                 engine.pool().host(gpu().context(), batch() * bytes(), node())} {}
  // A batch waits for the one before the last, which must not wait at the gate.
  int entries() const override { return kMostHeld + 1; }
  void resize(int items, int per_item) override {
    if (per_item != 1) throw host::Failure(name() + ": a timestamp for several batches", "give each batch its own");
    QueryStream::resize(items, per_item);
  }

 protected:
  void queue_batch(int number) override {
    std::byte* to = staging_[static_cast<std::size_t>(number % 2)]->data();
    if (number >= 2) gpu().check(gpu().calls().cuEventSynchronize(event_after(number - 2).get()), "cuEventSynchronize");
    for (std::size_t i = 0; i < batch(); ++i) std::memcpy(to + i * bytes(), sample(pick_of(number, i)), bytes());
    gpu().check(gpu().calls().cuMemcpyHtoDAsync(slot(0), to, batch() * bytes(), handle()), "cuMemcpyHtoDAsync");
  }

 private:
  std::array<std::shared_ptr<const Pinned>, 2> staging_;
};

std::unique_ptr<CopyStream> make_copy_stream(Engine& engine, const Queries& queries) {
  if (queries.method == "calls") return std::make_unique<CallsStream>(engine, queries);
  if (queries.method == "batch") return std::make_unique<BatchStream>(engine, queries);
  if (queries.method == "kernel") return std::make_unique<KernelStream>(engine, queries);
  if (queries.method == "staged") return std::make_unique<StagedStream>(engine, queries);
  throw host::Failure("no method '" + queries.method + "' for queries", "take calls, batch, kernel or staged");
}

}  // namespace

std::unique_ptr<Run> prepare_queries(const std::shared_ptr<Engine>& engine, const Queries& queries) {
  const std::scoped_lock turn(engine->turn());
  std::vector<std::unique_ptr<CopyStream>> streams;
  streams.push_back(make_copy_stream(*engine, queries));
  return std::make_unique<Run>(engine, std::move(streams));
}

}  // namespace lanewise::cuda
