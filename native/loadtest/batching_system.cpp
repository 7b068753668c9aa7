#include "loadtest/batching_system.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "loadtest/crc32.hpp"

namespace lanewise::loadtest {

namespace {

constexpr std::int64_t kStall = 20'000;  // ns between two looks for room

}  // namespace

void Fault::set(const std::string& cause, const std::string& hint) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!first_) first_.emplace(cause, hint);
  set_ = true;
}

void Fault::skip_rest() noexcept { set_ = true; }

void Fault::raise() {
  std::optional<host::Failure> first;
  {
    const std::scoped_lock lock(mutex_);
    first.swap(first_);
    set_ = false;
  }
  if (first) throw host::Failure(*first);
}

void Fault::clear() noexcept {
  const std::scoped_lock lock(mutex_);
  first_.reset();
  set_ = false;
}

DeviceQueue::BatchThread::BatchThread(std::size_t stream, const QueueOptions& options)
    : number(stream),
      queries(options.batch),
      slots(options.batch),
      answers(options.batch),
      checksums(options.batch),
      statistics(options.batch) {}

DeviceQueue::DeviceQueue(std::size_t number, const QueueOptions& options, QueueContext& context,
                         std::unique_ptr<SampleCopier> copier, std::unique_ptr<InferenceEngine> engine)
    : number_(number),
      options_(options),
      batch_limit_(options.batch),
      context_(context),
      copier_(std::move(copier)),
      engine_(std::move(engine)),
      ring_(std::max(options.most_waiting, options.batch)) {
  for (std::size_t i = 0; i < options.streams; ++i) workers_.push_back(std::make_unique<BatchThread>(i, options));
}

DeviceQueue::~DeviceQueue() { stop(); }

void DeviceQueue::start() {
  stopping_ = false;
  for (const auto& worker : workers_) {
    worker->statistics.change([this](Statistics& statistics) { statistics = Statistics(options_.batch); });
    worker->thread = std::thread([this, each = worker.get()] { run(*each); });
    const std::string name = "queue" + std::to_string(number_) + "." + std::to_string(worker->number);
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
  flushed_to_.store(ring_.tail(), std::memory_order_seq_cst);
  ring_.wake();
}

void DeviceQueue::add_to(Statistics& statistics) {
  for (const auto& worker : workers_) {
    worker->statistics.change([&](const Statistics& of_worker) { statistics.add(of_worker); });
  }
}

void DeviceQueue::run(BatchThread& worker) {
  wake_promptly();
  while (const std::size_t count = form_batch(worker)) serve(worker, count);
}

// The next batch: full, or its oldest query has waited long enough, or nothing more comes. 0: the run is over.
std::size_t DeviceQueue::form_batch(BatchThread& worker) {
  const std::scoped_lock lock(forming_mutex_);
  const auto hurry = [this] { return stopping_.load() || flushed_to_.load() > ring_.head(); };
  ring_.wait(ring_.head() + 1, kNever, hurry);
  if (ring_.tail() == ring_.head()) return 0;
  ring_.wait(ring_.head() + batch_limit_, ring_.front().arrived + options_.timeout, hurry);
  return ring_.pop(std::span(worker.queries).first(batch_limit_));
}

void DeviceQueue::serve(BatchThread& worker, std::size_t count) {
  const std::span<const QueuedQuery> queries = std::span(worker.queries).first(count);
  BatchTimes times{.batched = now_ns()};
  for (std::size_t i = 0; i < count; ++i) worker.answers[i] = {.id = queries[i].id};
  if (!context_.fault.is_set()) {
    try {
      copy_and_infer(worker, count, times);
    } catch (const host::Failure& failure) {
      context_.fault.set(failure.what(), failure.hint());
    } catch (const std::exception& error) {
      context_.fault.set(error.what(), "");
    }
  }
  const bool failed = context_.fault.is_set();
  if (failed) {
    for (std::size_t i = 0; i < count; ++i) worker.answers[i] = {.id = queries[i].id};
  }
  context_.answer(std::span<const Answer>(worker.answers).first(count));
  times.completed = now_ns();
  answered_.fetch_add(count, std::memory_order_relaxed);
  worker.statistics.change([&](Statistics& statistics) {
    if (failed) {
      statistics.failed += count;
    } else {
      statistics.add(queries, times, count * context_.library.bytes());
    }
  });
  if (!failed) context_.trace.add(number_, worker.number, queries, times);
}

void DeviceQueue::copy_and_infer(BatchThread& worker, std::size_t count, BatchTimes& times) {
  const SampleLibrary& library = context_.library;
  for (std::size_t i = 0; i < count; ++i) {
    worker.slots[i] = library.slot(worker.queries[i].sample);
    if (worker.slots[i] != SampleLibrary::kNotLoaded) continue;
    throw host::Failure("sample " + std::to_string(worker.queries[i].sample) + " was asked for but is not loaded",
                        "load what the generator says before the run starts");
  }
  copier_->copy(worker.number, std::span<const std::uint32_t>(worker.slots).first(count));
  times.copied = now_ns();
  const Batch batch{.stream = worker.number,
                    .queries = std::span<const QueuedQuery>(worker.queries).first(count),
                    .address = copier_->address(worker.number),
                    .bytes = library.bytes(),
                    .stride = library.stride(),
                    .keeper = copier_->keeper(worker.number)};
  engine_->infer(batch, std::span(worker.answers).first(count));
  times.inferred = now_ns();
  if (options_.checksum) answer_with_checksums(worker, count);
}

void DeviceQueue::answer_with_checksums(BatchThread& worker, std::size_t count) {
  const SampleLibrary& library = context_.library;
  const std::byte* const data = copier_->read_back(worker.number, count * library.stride());
  for (std::size_t i = 0; i < count; ++i) {
    worker.checksums[i] = crc32(data + i * library.stride(), library.bytes());
    worker.answers[i].data = reinterpret_cast<const std::byte*>(&worker.checksums[i]);
    worker.answers[i].bytes = sizeof worker.checksums[i];
  }
}

BatchingSystem::BatchingSystem(const QueueOptions& options, Balance balance, std::unique_ptr<QueueContext> context,
                               const std::vector<MakeQueueParts>& queues)
    : options_(options), balance_(balance), context_(std::move(context)) {
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
  context_->fault.skip_rest();
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
