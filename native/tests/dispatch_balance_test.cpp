// Which node a query goes to: estimates against closed forms, choices against those of somebody who knows the nodes'
// speeds, in simulated time; then that a Frontend measures and chooses so.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "dispatch/balance.hpp"
#include "dispatch/network_system.hpp"
#include "dispatch_pairs.hpp"
#include "host/memory.hpp"
#include "loadtest/clock.hpp"
#include "loadtest/cpu_copier_and_engine.hpp"
#include "simulated_nodes.hpp"

namespace lanewise::dispatch {
namespace {

TEST(CompletionTime, OfAQueueIsItsPlaceTimesTheServiceTime) {
  CompletionTime time;
  EXPECT_FALSE(time.measured());
  for (int i = 0; i < 500; ++i) {
    const auto ahead = static_cast<float>(i * 7 % 20);
    time.add({ahead, 4 * (ahead + 1)});
  }
  EXPECT_TRUE(time.measured());
  for (const std::uint64_t ahead : {1, 5, 100}) {
    EXPECT_NEAR(time.expected(ahead), 4.0 * static_cast<double>(ahead + 1), 1e-3 * static_cast<double>(ahead + 1));
  }
  EXPECT_NEAR(time.expected(0), 4, 0.4);
}

TEST(CompletionTime, IsNeverBelowTheShortestRoundTrip) {
  CompletionTime time;
  for (int i = 0; i < 500; ++i) time.add({7, 24});  // eight at once, 24 each, without a queue
  EXPECT_NEAR(time.expected(0), 24, 0.1);
  EXPECT_NEAR(time.expected(7), 24, 0.1);
  EXPECT_NEAR(time.expected(15), 48, 0.1);
}

TEST(CompletionTime, FollowsANodeThatBecomesFasterOrSlower) {
  CompletionTime time;
  for (int i = 0; i < 1000; ++i) time.add({0, 10});
  for (int i = 0; i < 300; ++i) time.add({0, 1});
  EXPECT_NEAR(time.expected(0), 1, 0.1);
  for (int i = 0; i < 600; ++i) time.add({0, 10});
  EXPECT_NEAR(time.expected(0), 10, 0.5);
}

TEST(NodeBalance, TakesTheFewestOutstandingThenTheNearestUntilAllAreMeasured) {
  NodeBalance balance;
  balance.reset(3);
  balance.add(0, {0, 1});
  const std::vector<Candidate> some{{0, 2, 0}, {1, 1, 1}, {2, 1, 0}};
  EXPECT_EQ(balance.choose(some), 2U);
  balance.add(1, {0, 100});
  balance.add(2, {0, 100});
  EXPECT_EQ(balance.choose(some), 0U);
  const std::vector<Candidate> slow{{1, 0, 1}, {2, 0, 0}};
  EXPECT_EQ(balance.choose(slow), 1U);
}

TEST(NodeBalance, TimesThatHardlyDifferAreEqual) {
  NodeBalance balance;
  balance.reset(2);
  balance.add(0, {0, 100});
  balance.add(1, {0, 109});
  const std::vector<Candidate> near{{0, 5, 1}, {1, 5, 0}}, fewer{{0, 9, 0}, {1, 8, 1}};
  EXPECT_EQ(balance.choose(near), 1U);   // 600 and 654
  EXPECT_EQ(balance.choose(fewer), 1U);  // 1000 and 981
}

TEST(NodeBalance, LooksNowAndThenWhetherAnIdleNodeBecameFaster) {
  NodeBalance balance;
  balance.reset(2);
  balance.add(0, {0, 1});
  balance.add(1, {0, 1000});
  const std::vector<Candidate> both{{0, 3, 0}, {1, 0, 0}};
  std::size_t probes = 0;
  for (std::uint64_t i = 0; i < 10 * NodeBalance::kStale; ++i) probes += balance.choose(both);
  EXPECT_EQ(probes, 9U);
  balance.add(1, {0, 1});  // one answer suffices, whatever was measured long ago
  EXPECT_EQ(balance.choose(both), 1U);
}

constexpr std::uint64_t kQueries = 40'000;

TEST(NodeBalance, OverUnequalNodesIsAsGoodAsKnowingTheirSpeeds) {
  for (const auto& service : {constant, exponential}) {
    const std::vector<SimulatedNode> nodes{{service(1)}, {service(4)}};
    for (const double load : {0.5, 0.8, 0.95}) {
      const double rate = load * 1.25;
      const Simulated measured = balanced(nodes, rate, kQueries), known = informed(nodes, rate, kQueries, {1, 4}),
                      fewest = informed(nodes, rate, kQueries, {1, 1});
      EXPECT_LT(measured.p99, 1.1 * known.p99) << load;
      EXPECT_LT(1.3 * measured.p99, fewest.p99) << load;
      EXPECT_GT(measured.shares[0], fewest.shares[0]) << load;
    }
    // At capacity the shares are those of the speeds.
    EXPECT_NEAR(balanced(nodes, 1.25, kQueries).shares[0], 0.8, 0.01);
  }
}

TEST(NodeBalance, OverEqualNodesIsTheFewestOutstanding) {
  const std::vector<std::vector<SimulatedNode>> cases{
      {{constant(1)}, {constant(1)}},
      {{exponential(1)}, {exponential(1)}},
      {{constant(8), 8}, {constant(8), 8}},  // whichever gets more looks faster, below saturation
      {{exponential(8), 8}, {exponential(8), 8}},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const double load : {0.3, 0.6, 0.9}) {
      const Simulated measured = balanced(cases[i], 2 * load, kQueries),
                      fewest = informed(cases[i], 2 * load, kQueries, {1, 1});
      EXPECT_LT(measured.p99, 1.05 * fewest.p99) << i << ' ' << load;
      EXPECT_NEAR(measured.shares[0], 0.5, 0.03) << i << ' ' << load;
    }
  }
}

TEST(NodeBalance, ANodeThatStoodStillGetsItsShareAgain) {
  const auto stalls = [](std::uint64_t query) { return query > 2000 && query < 2020 ? 500.0 : 1.0; };
  const Simulated whole = balanced({{constant(1)}, {stalls}}, 0.9, kQueries);
  EXPECT_GT(whole.shares[1], 0.3);
}

// Answers a query once the test allows it.
class HeldChannel : public Channel {
 public:
  // Waits before it answers a query: `hold(posted)`.
  explicit HeldChannel(std::function<void(std::int64_t)> hold) : hold_(std::move(hold)) {}
  void post(const Message& message, const std::byte*) override {
    const std::scoped_lock lock(mutex_);
    Message answer{.slot = message.slot, .tag = message.tag, .kind = MessageKind::kAnswer};
    if (message.kind != MessageKind::kQuery) answer = {.slot = kSlots, .kind = MessageKind::kReply};
    posted_.push({answer, loadtest::now_ns()});
    ChannelCounters::add(counters_.posted, message.kind == MessageKind::kQuery ? 1 : 0);
    change_.notify_all();
  }
  void ring() override {}
  std::size_t receive(std::span<Message> into, std::int64_t) override {
    std::unique_lock lock(mutex_);
    change_.wait(lock, [this] { return !posted_.empty() || closed_; });
    if (posted_.empty()) return 0;
    const auto [answer, time] = posted_.front();
    posted_.pop();
    lock.unlock();
    if (answer.kind == MessageKind::kAnswer) hold_(time);
    into[0] = answer;
    return 1;
  }
  void close() noexcept override {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    change_.notify_all();
  }
  const Slots& slots() const override { return slots_; }

 private:
  std::function<void(std::int64_t)> hold_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kSlots * kAnswerBytes + kTextBytes);
  Slots slots_ = answers_in(&memory_);
  std::mutex mutex_;
  std::condition_variable change_;
  std::queue<std::pair<Message, std::int64_t>> posted_;
  bool closed_ = false;
};

// A Frontend that sends one query after the other, each when the one before it is answered.
struct OneByOne {
  NetworkSystem frontend{loadtest::SampleLibrary(1, 1, kSampleBytes, loadtest::host_memory(), loadtest::fill_synthetic),
                         0};
  std::atomic<std::uint64_t> answers = 0;

  void run(std::uint64_t queries) {
    frontend.load(std::vector<std::uint64_t>{0});
    frontend.start([this](std::span<const loadtest::Answer> some) { answers += some.size(); });
    for (std::uint64_t i = 0; i < queries; ++i) {
      const loadtest::Query query{i, 0};
      frontend.issue({&query, 1});
      while (answers.load() <= i || outstanding() > 0) std::this_thread::yield();
    }
    frontend.stop();
  }
  std::uint64_t outstanding() const {
    std::uint64_t sum = 0;
    for (const ConnectionCounters& counters : frontend.counters()) sum += counters.outstanding;
    return sum;
  }
  std::vector<std::uint64_t> posted() const {
    std::vector<std::uint64_t> all;
    for (const ConnectionCounters& counters : frontend.counters()) all.push_back(counters.posted);
    return all;
  }
};

TEST(NetworkSystem, SendsMoreToANodeWhoseAnswersTakeLess) {
  std::atomic<std::int64_t> longest = 1'000'000;  // ns, of the fast node; at least 1 ms
  OneByOne test;
  test.frontend.add(0, std::make_unique<HeldChannel>([&](std::int64_t posted) {
                      longest = std::max(longest.load(), loadtest::now_ns() - posted);
                    }),
                    host::kAnyNode, {});
  test.frontend.add(1, std::make_unique<HeldChannel>([&](std::int64_t posted) {
                      while (loadtest::now_ns() - posted < 10 * longest) std::this_thread::yield();
                    }),
                    host::kAnyNode, {});
  test.run(300);
  EXPECT_GE(test.posted()[1], 1U);
  EXPECT_LT(test.posted()[1], 30U);
}

TEST(NetworkSystem, OfEqualConnectionsTakesTheOneWhoseNicIsNearTheSamples) {
  OneByOne test;
  const int near = host::node_of(test.frontend.memory().data(), test.frontend.memory().size());
  if (near == host::kAnyNode) GTEST_SKIP() << "the kernel does not say where memory lies";
  for (const int numa : {near + 1, near, host::kAnyNode}) {
    test.frontend.add(0, std::make_unique<HeldChannel>([](std::int64_t) {}), numa, {});
  }
  test.run(60);
  EXPECT_EQ(test.posted()[0], 0U);
  EXPECT_GT(test.posted()[1], 0U);  // in turn with the one whose NUMA node is not known
  EXPECT_GT(test.posted()[2], 0U);
}

}  // namespace
}  // namespace lanewise::dispatch
