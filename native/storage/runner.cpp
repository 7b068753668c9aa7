#include "storage/runner.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <system_error>

#include "host/guarded.hpp"
#include "storage/pattern.hpp"
#include "storage/target_sink.hpp"

namespace lanewise::storage {

namespace {

// A thread of a load has all its slots, so that copies from one overlap with reads into the next.
unsigned worker_count(const Job& job) {
  return job.engine == Engine::kRing || !job.targets.empty() ? job.threads : job.threads * job.depth;
}

std::unique_ptr<Worker> make_worker(const Job& job, unsigned number, std::span<Slot> slots, Sink* sink) {
  switch (job.engine) {
    case Engine::kCuFile:
      return cufile_worker(job, number, slots, sink);
    case Engine::kSync:
      return sync_worker(job, number, slots, sink);
    default:
      return ring_worker(job, number, slots, sink);
  }
}

// Signals are for the thread that runs Python.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Runner::Runner(Job job) : job_(std::move(job)), slots_(std::size_t{job_.threads} * job_.depth) {
  make_buffers();
  make_sink();
  const unsigned workers = worker_count(job_);
  const std::size_t share = slots_.size() / workers;
  for (unsigned i = 0; i < workers; ++i) {
    workers_.push_back(make_worker(job_, i, std::span(slots_).subspan(i * share, share), sink_.get()));
  }
  start_threads();
  if (failure_) {
    end();
    throw host::Failure(*failure_);
  }
}

Runner::~Runner() {
  stop();
  end();
}

void Runner::make_buffers() {
  const std::uint64_t slot_bytes = stride(job_);
  const bool on_to_host = job_.bounce && job_.gpu < 0 && job_.targets.empty();
  memory_.emplace_back(slots_.size() * slot_bytes, on_to_host ? host::kAnyNode : job_.node);
  if (on_to_host) memory_.emplace_back(slots_.size() * slot_bytes, job_.node);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].number = i;
    slots_[i].buffer = slots_[i].data = memory_.front().data() + i * slot_bytes;
    blank(slots_[i].data, job_.io);
  }
}

void Runner::make_sink() {
  const Slots slots{memory_.front(), stride(job_), worker_count(job_)};
  if (!job_.targets.empty()) {
    sink_ = std::make_unique<TargetSink>(job_, slots);
  } else if (job_.engine == Engine::kCuFile) {
    sink_ = std::make_unique<CuFileSink>(job_.cuda, job_.cufile, job_.gpu, slots, job_.files);
  } else if (job_.gpu >= 0) {
    sink_ = std::make_unique<GpuSink>(job_.cuda, job_.gpu, slots);
  } else if (job_.bounce) {
    sink_ = std::make_unique<HostSink>(memory_.back().data(), stride(job_));
  }
}

void Runner::start_threads() {
  const BlockedSignals blocked;
  try {
    for (const auto& worker : workers_) {
      ++running_;
      threads_.emplace_back([this, &worker] { live(*worker); });
    }
  } catch (const std::system_error& error) {
    --running_;
    const std::lock_guard only_one(mutex_);
    failure_ = host::Failure("a thread cannot be started: " + std::string(error.what()), "use fewer --threads");
  }
  wait();
}

template <typename Action>
void Runner::guarded(Action&& action) {
  const auto fail = [this](const host::Failure& failure) {
    const std::lock_guard only_one(mutex_);
    if (round_)
      round_->fail(failure);
    else if (!failure_)
      failure_ = failure;
  };
  host::guarded(std::forward<Action>(action), fail);
}

void Runner::live(Worker& worker) {
  std::uint64_t turn = turn_.load();
  guarded([&] { worker.enter(); });
  for (;;) {
    --running_;
    running_.notify_all();
    turn_.wait(turn);
    turn = turn_.load();
    if (ended_) return;
    guarded([&] { worker.work(*round_); });
  }
}

void Runner::start(const Task& task) {
  wait();
  round_ = std::make_unique<Round>(job_, task, static_cast<unsigned>(workers_.size()));
  if (task.write && task.data == Data::kStamped) {
    for (const Slot& slot : slots_) blank(slot.data, job_.io);
  }
  running_ = workers_.size();
  round_->begin();
  ++turn_;
  turn_.notify_all();
}

void Runner::stop() {
  if (round_) round_->stop();
}

void Runner::wait() {
  for (std::size_t left = running_.load(); left > 0; left = running_.load()) running_.wait(left);
}

void Runner::end() {
  wait();
  ended_ = true;
  ++turn_;
  turn_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

double Runner::seconds() const { return round_ ? round_->seconds() : 0.0; }

std::vector<std::uint64_t> Runner::bytes() const {
  return round_ ? round_->bytes() : std::vector<std::uint64_t>(job_.files.size(), 0);
}

Outcome Runner::finish() {
  if (!round_) throw host::Failure("nothing was started", "call start() first");
  wait();
  return round_->outcome();
}

std::map<int, std::size_t> Runner::nodes() const { return memory_.back().nodes(); }

double in_page_cache(int file, std::uint64_t bytes) {
  constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 30;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident;
  std::uint64_t pages = 0, cached = 0;
  for (std::uint64_t at = 0; at < bytes; at += kAtOnce) {
    const std::size_t length = std::min(kAtOnce, bytes - at);
    void* mapped = mmap(nullptr, length, PROT_READ, MAP_SHARED, file, static_cast<off_t>(at));
    if (mapped == MAP_FAILED) return -1.0;
    resident.assign((length + page - 1) / page, 0);
    const bool known = mincore(mapped, length, resident.data()) == 0;
    munmap(mapped, length);
    if (!known) return -1.0;
    pages += resident.size();
    for (const unsigned char page_state : resident) cached += page_state & 1U;
  }
  return pages == 0 ? -1.0 : static_cast<double>(cached) / static_cast<double>(pages);
}

}  // namespace lanewise::storage
