// A system that answers at once: what remains is the load generator's own cost.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "loadtest/system.hpp"

namespace lanewise::loadtest {

class NullSystem : public SystemUnderTest {
 public:
  // With `by_thread` answers come from a thread of its own, in batches of what arrived meanwhile, as in real systems.
  explicit NullSystem(bool by_thread) : by_thread_(by_thread) {}
  ~NullSystem() override;
  std::string name() const override { return by_thread_ ? "null system (thread)" : "null system"; }
  void load(std::span<const std::uint64_t>) override {}
  void unload(std::span<const std::uint64_t>) override {}
  void start(AnswerCallback answers) override;
  void issue(std::span<const Query> queries) override;
  void flush() override {}
  void stop() override;

 private:
  void work();

  const bool by_thread_;
  AnswerCallback answers_;
  std::vector<Answer> at_once_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<Answer> waiting_;
  bool idle_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace lanewise::loadtest
