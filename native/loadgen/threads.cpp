#include "loadgen/threads.hpp"

#include <logging.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <utility>

#include "host/failure.hpp"

namespace lanewise::loadgen {

LoadGenThread::LoadGenThread() : thread_([this] { loop(); }) {}

LoadGenThread::~LoadGenThread() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LoadGenThread::begin(std::function<void()> work) {
  std::lock_guard lock(mutex_);
  work_ = std::move(work);
  busy_ = true;
  changed_.notify_all();
}

void LoadGenThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
}

bool LoadGenThread::wait_for(double seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !busy_; });
}

void LoadGenThread::loop() {
  // Sleeps end within 1 ns of their time, not within the usual 50 us: the issuing thread sleeps until a query is due.
  prctl(PR_SET_TIMERSLACK, 1UL);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return busy_ || ends_; });
    if (!busy_) return;
    lock.unlock();
    work_();
    work_ = nullptr;
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

namespace {

// Lets this thread's log buffer grow beyond what LoadGen reserves; its logger must not run yet.
void grow_buffer(std::promise<void>& read) {
  constexpr int kReserved = 1024;
  for (int i = 0; i <= kReserved; ++i) mlperf::logging::Log([](mlperf::logging::AsyncLog&) {});
  mlperf::logging::Log([&read](mlperf::logging::AsyncLog&) { read.set_value(); });
}

// LoadGen's logger frees what the other two threads allocate, a small piece for each query. glibc keeps such pieces
// apart until some larger one is freed, then joins them all at once: with those of an earlier run that takes tens of
// ms, in which no query is issued. Without its fast bins each piece is joined as it comes.
void free_as_it_comes() {
#ifdef __GLIBC__
  mallopt(M_MXFAST, 0);
#endif
}

}  // namespace

LoadGenThreads::LoadGenThreads() : process_(getpid()) {
  free_as_it_comes();
  std::promise<void> issuer_read, answerer_read;
  issuer_.begin([&] { grow_buffer(issuer_read); });
  answerer_.begin([&] { grow_buffer(answerer_read); });
  issuer_.wait();
  answerer_.wait();
  auto& logger = mlperf::logging::GlobalLogger();
  logger.StartIOThread();
  issuer_read.get_future().wait();
  answerer_read.get_future().wait();
  logger.StopIOThread();
}

// Ends the threads before LoadGen's logger goes; in a forked process there are none to end.
struct ThreadsUntilExit {
  ThreadsUntilExit() : logger(mlperf::logging::GlobalLogger()), threads(new LoadGenThreads) {}
  ~ThreadsUntilExit() {
    if (threads->process_ == getpid()) delete threads;
  }
  mlperf::logging::Logger& logger;  // first, so that it is the last to go
  LoadGenThreads* threads;
};

LoadGenThreads& LoadGenThreads::the() {
  static ThreadsUntilExit holder;
  if (holder.threads->process_ != getpid()) {
    throw host::Failure("this process was forked off one that has run a load test",
                        "start it anew: multiprocessing.set_start_method('spawn')");
  }
  return *holder.threads;
}

}  // namespace lanewise::loadgen
