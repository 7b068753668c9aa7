#include "loadtest/device_queue.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>

#include "loadtest/crc32.hpp"

namespace lanewise::loadtest {

void Fault::set(const std::string& cause, const std::string& hint) noexcept {
  const std::scoped_lock turn(turn_);
  if (!first_) first_.emplace(cause, hint);
  set_ = true;
}

void Fault::drop() noexcept { set_ = true; }

void Fault::raise() {
  std::optional<host::Failure> first;
  {
    const std::scoped_lock turn(turn_);
    first.swap(first_);
    set_ = false;
  }
  if (first) throw host::Failure(*first);
}

void Fault::clear() noexcept {
  const std::scoped_lock turn(turn_);
  first_.reset();
  set_ = false;
}

DeviceQueue::Worker::Worker(std::size_t stream_, const Batching& options)
    : stream(stream_), queries(options.batch), slots(options.batch), answers(options.batch), sums(options.batch), record(options.batch) {}

DeviceQueue::DeviceQueue(std::size_t number, const Batching& options, Shared& shared, std::unique_ptr<Mover> mover,
           std::unique_ptr<Engine> engine)
    : number_(number),
      options_(options),
      most_(options.batch),
      shared_(shared),
      mover_(std::move(mover)),
      engine_(std::move(engine)),
      ring_(std::max(options.ring, options.batch)) {
  for (std::size_t i = 0; i < options.streams; ++i) workers_.push_back(std::make_unique<Worker>(i, options));
}

DeviceQueue::~DeviceQueue() { stop(); }

void DeviceQueue::start() {
  stopping_ = false;
  for (const auto& worker : workers_) {
    worker->record.change([this](Tally& tally) { tally = Tally(options_.batch); });
    worker->thread = std::thread([this, each = worker.get()] { run(*each); });
    const std::string name = "queue" + std::to_string(number_) + "." + std::to_string(worker->stream);
    pthread_setname_np(worker->thread.native_handle(), name.substr(0, 15).c_str());
  }
}

void DeviceQueue::stop() {
  stopping_ = true;
  ring_.wake();
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

void DeviceQueue::flush() noexcept {
  released_.store(ring_.tail(), std::memory_order_seq_cst);
  ring_.wake();
}

void DeviceQueue::add_to(Tally& tally) {
  for (const auto& worker : workers_) {
    worker->record.change([&](const Tally& of) { tally.add(of); });
  }
}

void DeviceQueue::run(Worker& worker) {
  wake_promptly();
  while (const std::size_t count = take(worker)) serve(worker, count);
}

// The next batch: full, or its oldest query has waited long enough, or nothing more comes. 0: the run is over.
std::size_t DeviceQueue::take(Worker& worker) {
  const std::scoped_lock turn(taking_);
  const auto enough = [this] { return stopping_.load() || released_.load() > ring_.head(); };
  ring_.wait(ring_.head() + 1, kNever, enough);
  if (ring_.tail() == ring_.head()) return 0;
  const std::int64_t oldest = ring_.front().at;
  ring_.wait(ring_.head() + most_, options_.timeout < kNever - oldest ? oldest + options_.timeout : kNever, enough);
  return ring_.take(std::span(worker.queries).first(most_));
}

void DeviceQueue::serve(Worker& worker, std::size_t count) {
  const std::span<const Arrived> queries = std::span(worker.queries).first(count);
  Stamps stamps{.batched = now_ns()};
  for (std::size_t i = 0; i < count; ++i) worker.answers[i] = {.id = queries[i].id};
  if (!shared_.fault.is_set()) {
    try {
      answer(worker, count, stamps);
    } catch (const host::Failure& failure) {
      shared_.fault.set(failure.what(), failure.hint());
    } catch (const std::exception& error) {
      shared_.fault.set(error.what(), "");
    }
  }
  const bool failed = shared_.fault.is_set();
  if (failed) {
    for (std::size_t i = 0; i < count; ++i) worker.answers[i] = {.id = queries[i].id};
  }
  shared_.answers(std::span<const Answer>(worker.answers).first(count));
  stamps.completed = now_ns();
  answered_.fetch_add(count, std::memory_order_relaxed);
  worker.record.change([&](Tally& tally) {
    if (failed) {
      tally.failed += count;
    } else {
      tally.add(queries, stamps, count * shared_.library.bytes());
    }
  });
  if (!failed) shared_.trace.add(number_, worker.stream, queries, stamps);
}

void DeviceQueue::answer(Worker& worker, std::size_t count, Stamps& stamps) {
  const Library& library = shared_.library;
  for (std::size_t i = 0; i < count; ++i) {
    worker.slots[i] = library.slot(worker.queries[i].sample);
    if (worker.slots[i] != Library::kNotLoaded) continue;
    throw host::Failure("sample " + std::to_string(worker.queries[i].sample) + " was asked for but is not loaded",
                        "load what the generator says before the run starts");
  }
  mover_->move(worker.stream, std::span<const std::uint32_t>(worker.slots).first(count));
  stamps.copied = now_ns();
  const Batch batch{.stream = worker.stream,
                    .queries = std::span<const Arrived>(worker.queries).first(count),
                    .address = mover_->address(worker.stream),
                    .bytes = library.bytes(),
                    .stride = library.stride(),
                    .keeper = mover_->keeper(worker.stream)};
  engine_->infer(batch, std::span(worker.answers).first(count));
  stamps.inferred = now_ns();
  if (options_.checksum) answer_with_sums(worker, count);
}

void DeviceQueue::answer_with_sums(Worker& worker, std::size_t count) {
  const Library& library = shared_.library;
  const std::byte* const data = mover_->read_back(worker.stream, count * library.stride());
  for (std::size_t i = 0; i < count; ++i) {
    worker.sums[i] = crc32(data + i * library.stride(), library.bytes());
    worker.answers[i].data = reinterpret_cast<const std::byte*>(&worker.sums[i]);
    worker.answers[i].bytes = sizeof worker.sums[i];
  }
}

}  // namespace lanewise::loadtest
