#include "loadtest/batching_system.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "loadtest/crc32.hpp"

namespace lanewise::loadtest {

namespace {

constexpr std::int64_t kStall = 20'000;  // ns between two looks for room

const QueueOptions& checked(const QueueOptions& options) {
  const auto least = [](std::size_t value, std::size_t most, const char* what) {
    if (value >= 1 && value <= most) return;
    throw host::Failure(std::string(what) + " " + std::to_string(value), "take 1 to " + std::to_string(most));
  };
  least(options.batch, 65535, "batches of");  // blocks of the gather kernel's grid along y
  least(options.streams, 64, "batches in flight:");
  least(options.waiting, std::size_t{1} << 28, "queries that may wait:");
  if (options.timeout < 0) throw host::Failure("a time-out below zero", "0 takes what is there");
  return options;
}

}  // namespace

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

DeviceQueue::StreamThread::StreamThread(std::size_t stream_, const QueueOptions& options)
    : stream(stream_),
      queries(options.batch),
      slots(options.batch),
      answers(options.batch),
      checksums(options.batch),
      statistics(options.batch) {}

DeviceQueue::DeviceQueue(std::size_t number, const QueueOptions& options, QueueContext& context,
                         std::unique_ptr<SampleCopier> copier, std::unique_ptr<InferenceEngine> engine)
    : number_(number),
      options_(options),
      most_(options.batch),
      context_(context),
      copier_(std::move(copier)),
      engine_(std::move(engine)),
      ring_(std::max(options.waiting, options.batch)) {
  for (std::size_t i = 0; i < options.streams; ++i) streams_.push_back(std::make_unique<StreamThread>(i, options));
}

DeviceQueue::~DeviceQueue() { stop(); }

void DeviceQueue::start() {
  stopping_ = false;
  for (const auto& stream : streams_) {
    stream->statistics.change([this](Statistics& statistics) { statistics = Statistics(options_.batch); });
    stream->thread = std::thread([this, each = stream.get()] { run(*each); });
    const std::string name = "queue" + std::to_string(number_) + "." + std::to_string(stream->stream);
    pthread_setname_np(stream->thread.native_handle(), name.substr(0, 15).c_str());
  }
}

void DeviceQueue::stop() {
  stopping_ = true;
  ring_.wake();
  for (const auto& stream : streams_) {
    if (stream->thread.joinable()) stream->thread.join();
  }
}

void DeviceQueue::flush() noexcept {
  released_.store(ring_.tail(), std::memory_order_seq_cst);
  ring_.wake();
}

void DeviceQueue::add_to(Statistics& statistics) {
  for (const auto& stream : streams_) {
    stream->statistics.change([&](const Statistics& of_stream) { statistics.add(of_stream); });
  }
}

void DeviceQueue::run(StreamThread& stream) {
  wake_promptly();
  while (const std::size_t count = form_batch(stream)) serve(stream, count);
}

// The next batch: full, or its oldest query has waited long enough, or nothing more comes. 0: the run is over.
std::size_t DeviceQueue::form_batch(StreamThread& stream) {
  const std::scoped_lock turn(forming_);
  const auto enough = [this] { return stopping_.load() || released_.load() > ring_.head(); };
  ring_.wait(ring_.head() + 1, kNever, enough);
  if (ring_.tail() == ring_.head()) return 0;
  const std::int64_t oldest = ring_.front().at;
  ring_.wait(ring_.head() + most_, options_.timeout < kNever - oldest ? oldest + options_.timeout : kNever, enough);
  return ring_.pop(std::span(stream.queries).first(most_));
}

void DeviceQueue::serve(StreamThread& stream, std::size_t count) {
  const std::span<const QueuedQuery> queries = std::span(stream.queries).first(count);
  BatchTimes times{.batched = now_ns()};
  for (std::size_t i = 0; i < count; ++i) stream.answers[i] = {.id = queries[i].id};
  if (!context_.fault.is_set()) {
    try {
      copy_and_infer(stream, count, times);
    } catch (const host::Failure& failure) {
      context_.fault.set(failure.what(), failure.hint());
    } catch (const std::exception& error) {
      context_.fault.set(error.what(), "");
    }
  }
  const bool failed = context_.fault.is_set();
  if (failed) {
    for (std::size_t i = 0; i < count; ++i) stream.answers[i] = {.id = queries[i].id};
  }
  context_.answer(std::span<const Answer>(stream.answers).first(count));
  times.completed = now_ns();
  answered_.fetch_add(count, std::memory_order_relaxed);
  stream.statistics.change([&](Statistics& statistics) {
    if (failed) {
      statistics.failed += count;
    } else {
      statistics.add(queries, times, count * context_.library.bytes());
    }
  });
  if (!failed) context_.trace.add(number_, stream.stream, queries, times);
}

void DeviceQueue::copy_and_infer(StreamThread& stream, std::size_t count, BatchTimes& times) {
  const SampleLibrary& library = context_.library;
  for (std::size_t i = 0; i < count; ++i) {
    stream.slots[i] = library.slot(stream.queries[i].sample);
    if (stream.slots[i] != SampleLibrary::kNotLoaded) continue;
    throw host::Failure("sample " + std::to_string(stream.queries[i].sample) + " was asked for but is not loaded",
                        "load what the generator says before the run starts");
  }
  copier_->copy(stream.stream, std::span<const std::uint32_t>(stream.slots).first(count));
  times.copied = now_ns();
  const Batch batch{.stream = stream.stream,
                    .queries = std::span<const QueuedQuery>(stream.queries).first(count),
                    .address = copier_->address(stream.stream),
                    .bytes = library.bytes(),
                    .stride = library.stride(),
                    .keeper = copier_->keeper(stream.stream)};
  engine_->infer(batch, std::span(stream.answers).first(count));
  times.inferred = now_ns();
  if (options_.checksum) answer_with_checksums(stream, count);
}

void DeviceQueue::answer_with_checksums(StreamThread& stream, std::size_t count) {
  const SampleLibrary& library = context_.library;
  const std::byte* const data = copier_->read_back(stream.stream, count * library.stride());
  for (std::size_t i = 0; i < count; ++i) {
    stream.checksums[i] = crc32(data + i * library.stride(), library.bytes());
    stream.answers[i].data = reinterpret_cast<const std::byte*>(&stream.checksums[i]);
    stream.answers[i].bytes = sizeof stream.checksums[i];
  }
}

BatchingSystem::BatchingSystem(std::string name, const QueueOptions& options, Balance balance,
                               std::unique_ptr<QueueContext> context, const std::vector<MakeQueueParts>& queues)
    : name_(std::move(name)), options_(checked(options)), balance_(balance), context_(std::move(context)) {
  if (queues.empty()) throw host::Failure("a system without a device", "name one at least");
  for (const MakeQueueParts& make : queues) {
    QueueParts parts = make(context_->library);
    parts.copier->prepare(options_.batch, options_.streams);
    parts.engine->prepare(options_.batch, options_.streams);
    queues_.push_back(std::make_unique<DeviceQueue>(queues_.size(), options_, *context_, std::move(parts.copier),
                                                    std::move(parts.engine)));
  }
}

void BatchingSystem::start(AnswerCallback answer) {
  if (running_.exchange(true)) throw host::Failure("the system runs already", "stop it first");
  context_->answer = std::move(answer);
  context_->fault.clear();
  context_->trace.clear();
  stalled_ = 0;
  for (const auto& queue : queues_) queue->start();
}

DeviceQueue& BatchingSystem::pick() noexcept {
  if (queues_.size() == 1) return *queues_.front();
  const std::size_t first = next_.fetch_add(1, std::memory_order_relaxed) % queues_.size();
  if (balance_ == Balance::kRoundRobin) return *queues_[first];
  // Equal ones in turn: an idle system uses all its devices.
  DeviceQueue* best = queues_[first].get();
  std::uint64_t least = best->outstanding();
  for (std::size_t i = 1; i < queues_.size() && least > 0; ++i) {
    DeviceQueue* const queue = queues_[(first + i) % queues_.size()].get();
    if (const std::uint64_t count = queue->outstanding(); count < least) {
      best = queue;
      least = count;
    }
  }
  return *best;
}

void BatchingSystem::issue(std::span<const Query> queries) {
  const std::int64_t now = now_ns();
  // What comes together goes in whole batches where there is more than a batch for each queue.
  const std::size_t queues = queues_.size();
  const std::size_t portion =
      queues == 1 ? queries.size() : std::clamp<std::size_t>(queries.size() / queues, 1, options_.batch);
  while (!queries.empty() && running_.load(std::memory_order_relaxed)) {
    const std::size_t pushed = pick().push(queries.first(std::min(portion, queries.size())), now);
    queries = queries.subspan(pushed);
    if (pushed > 0) continue;
    const std::int64_t since = now_ns();
    sleep_until(since + kStall, 0);
    stalled_.fetch_add(now_ns() - since, std::memory_order_relaxed);
  }
}

void BatchingSystem::flush() {
  for (const auto& queue : queues_) queue->flush();
}

void BatchingSystem::cancel() {
  context_->fault.drop();
  flush();
}

void BatchingSystem::limit_batch(std::size_t batch) {
  if (running_) throw host::Failure("the system runs", "stop it first");
  for (const auto& queue : queues_) queue->limit_batch(batch);
}

void BatchingSystem::end() noexcept {
  running_ = false;
  for (const auto& queue : queues_) queue->stop();
}

void BatchingSystem::stop() {
  end();
  context_->answer = nullptr;
  context_->fault.raise();
}

Statistics BatchingSystem::statistics() {
  Statistics statistics(options_.batch);
  for (const auto& queue : queues_) queue->add_to(statistics);
  return statistics;
}

}  // namespace lanewise::loadtest
