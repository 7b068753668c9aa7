// The two threads that speak to LoadGen, one that issues and one that answers. They live as long as the process,
// because LoadGen 6.0.17 keeps a log buffer for each thread that ever called it, and frees it when the thread ends
// while its logger may still hold a pointer to it: that happens when the buffer outgrows its 1024 entries for the first
// time just then. While it does so, another thread writes to the buffer's unguarded state. So the buffers grow here,
// once, while nobody writes.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace lanewise::loadgen {

// A thread that does one piece of work after the other.
class LoadGenThread {
 public:
  LoadGenThread();
  ~LoadGenThread();
  void begin(std::function<void()> work);  // must not throw
  void wait();
  // Whether the work was done within that time.
  bool wait_for(double seconds);
  bool is_this_thread() const noexcept { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool busy_ = false;
  bool ends_ = false;
  std::thread thread_;  // the last member: it uses the others
};

class LoadGenThreads {
 public:
  // host::Failure in a process that was forked off one that has it: threads do not follow.
  static LoadGenThreads& the();
  LoadGenThread& issuer() noexcept { return issuer_; }
  LoadGenThread& answerer() noexcept { return answerer_; }
  // Held by whoever runs a test: LoadGen has one logger in a process.
  std::mutex& run_mutex() noexcept { return run_mutex_; }

 private:
  friend struct ThreadsUntilExit;
  LoadGenThreads();

  const pid_t process_;
  std::mutex run_mutex_;
  LoadGenThread issuer_, answerer_;
};

}  // namespace lanewise::loadgen
