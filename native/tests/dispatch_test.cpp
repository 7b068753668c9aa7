// Both sides of the query dispatch in one process: what is posted arrives whole and once, a peer that is gone or that
// sends what has no meaning harms nobody, and transactions end once.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dispatch/checksum_system.hpp"
#include "dispatch/network_system.hpp"
#include "dispatch/node.hpp"
#include "dispatch_pairs.hpp"
#include "host/failure.hpp"
#include "host/memory.hpp"
#include "loadtest/clock.hpp"
#include "loadtest/cpu_copier_and_engine.hpp"
#include "loadtest/replay.hpp"

namespace lanewise::dispatch {
namespace {

// A node that answers each query before post() returns, as when another thread sends what a full socket held back.
class PromptChannel : public Channel {
 public:
  void post(const Message& message, const std::byte*) override {
    if (message.kind == MessageKind::kFlush) return;
    std::unique_lock lock(mutex_);
    answer_ = {.slot = message.slot, .tag = message.tag, .kind = MessageKind::kAnswer};
    if (message.kind != MessageKind::kQuery) answer_ = {.slot = kSlots, .kind = MessageKind::kReply};
    has_answer_ = true;
    change_.notify_all();
    if (message.kind == MessageKind::kQuery) change_.wait(lock, [this] { return !has_answer_ && receiving_; });
  }
  void ring() override {}
  std::size_t receive(std::span<Message> into, std::int64_t) override {
    std::unique_lock lock(mutex_);
    receiving_ = true;  // what it took before is dealt with
    change_.notify_all();
    change_.wait(lock, [this] { return has_answer_ || closed_; });
    receiving_ = false;
    if (!std::exchange(has_answer_, false)) return 0;
    into[0] = answer_;
    return 1;
  }
  void close() noexcept override {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    change_.notify_all();
  }
  const Slots& slots() const override { return slots_; }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(kSlots * kAnswerBytes + kTextBytes);
  Slots slots_ = answers_in(&memory_);
  std::mutex mutex_;
  std::condition_variable change_;
  Message answer_;
  bool has_answer_ = false, receiving_ = false, closed_ = false;
};

TEST(NetworkSystem, AnAnswerMayComeBeforePostReturns) {
  NetworkSystem frontend(loadtest::SampleLibrary(1, 1, kSampleBytes, loadtest::host_memory(), loadtest::fill_synthetic),
                         0);
  frontend.add(0, std::make_unique<PromptChannel>(), host::kAnyNode, {});
  frontend.load(std::vector<std::uint64_t>{0});
  const auto result =
      loadtest::replay(frontend, std::vector<std::int64_t>(kSlots, 0), std::vector<std::uint64_t>(kSlots, 0),
                       {.coalesce = true, .flush = true, .keep = false, .limit = 20}, [] {});
  for (const std::uint32_t answers : result.answers) ASSERT_EQ(answers, 1U);
  EXPECT_EQ(frontend.counters().at(0).stale, 0U);
}

TEST(NetworkSystem, WhoReadsTimesOnceAnAnswerIsThereMissesNone) {
  NetworkSystem frontend(loadtest::SampleLibrary(1, 1, kSampleBytes, loadtest::host_memory(), loadtest::fill_synthetic),
                         0);
  frontend.add(0, std::make_unique<PromptChannel>(), 0, {});
  frontend.load(std::vector<std::uint64_t>{0});
  std::atomic<bool> answered = false, reading = false;
  frontend.start([&](std::span<const loadtest::Answer>) {
    answered = true;
    answered.notify_all();
    reading.wait(false);
  });
  std::jthread issuer([&] { frontend.issue(std::vector<loadtest::Query>{{1, 0}}); });
  answered.wait(false);
  reading = true;
  reading.notify_all();
  EXPECT_EQ(frontend.latencies().at(kAll).count(), 1);
  issuer.join();
  frontend.stop();
}

class EveryTransport : public testing::TestWithParam<Pair (*)(const SharedMemoryPointer&)> {};
INSTANTIATE_TEST_SUITE_P(Transports, EveryTransport, testing::Values(&shm_pair, &tcp_pair));
#ifdef LANEWISE_VERBS
INSTANTIATE_TEST_SUITE_P(Verbs, EveryTransport, testing::Values(&verbs_pair));
#endif

TEST_P(EveryTransport, DataIsInItsSlotWhenTheMessageComes) {
  const auto slots = sample_memory();
  const Pair pair = GetParam()(slots);
  std::vector<std::byte> sample(kSampleBytes, std::byte{7});
  pair.frontend->register_source(sample);
  pair.frontend->post({.slot = 3, .tag = 9, .bytes = kSampleBytes, .kind = MessageKind::kQuery}, sample.data());
  std::array<Message, 4> messages;
  EXPECT_EQ(pair.node->receive(messages, 0), 0U);  // before the doorbell
  pair.frontend->ring();
  std::size_t got = 0;
  while (got == 0) got = pair.node->receive(messages, kSoon);
  ASSERT_EQ(got, 1U);
  EXPECT_EQ(messages[0].slot, 3U);
  EXPECT_EQ(messages[0].tag, 9U);
  EXPECT_EQ(pair.node->slots().at(3)[kSampleBytes - 1], std::byte{7});
}

// Short data travels with its message, long data goes to its slot: both are there in the end.
TEST_P(EveryTransport, DataOfAnySizeIsInItsSlot) {
  constexpr std::uint32_t kMost = 200;
  const auto slots = sample_memory();
  const Pair pair = GetParam()(slots);
  std::vector<std::byte> sample(kMost);
  for (std::size_t i = 0; i < sample.size(); ++i) sample[i] = static_cast<std::byte>(i + 1);
  pair.frontend->register_source(sample);
  for (std::uint32_t bytes = 1; bytes <= kMost; ++bytes) {
    const std::uint32_t slot = bytes % kSlots;
    pair.frontend->post({.slot = slot, .bytes = bytes, .kind = MessageKind::kQuery}, sample.data());
    pair.frontend->ring();
    std::array<Message, 4> messages;
    std::size_t got = 0;
    while (got == 0) got = pair.node->receive(messages, kSoon);
    ASSERT_EQ(got, 1U);
    EXPECT_TRUE(std::equal(sample.begin(), sample.begin() + bytes, pair.node->slots().at(slot))) << bytes;
    std::fill_n(pair.node->slots().at(slot), bytes, std::byte{0});
  }
}

TEST_P(EveryTransport, RefusesMessagesThatFitNoSlot) {
  const auto slots = sample_memory();
  const Pair pair = GetParam()(slots);
  const std::vector<std::byte> data(kTextBytes + 1);
  EXPECT_THROW(pair.node->post({.slot = 0, .bytes = kAnswerBytes + 1}, data.data()), host::Failure);
  EXPECT_THROW(pair.node->post({.slot = kSlots, .bytes = kTextBytes + 1}, data.data()), host::Failure);
}

TEST_P(EveryTransport, CloseEndsAWaitingReceiver) {
  const auto slots = sample_memory();
  const Pair pair = GetParam()(slots);
  std::atomic<bool> ended = false;
  std::jthread receiver([&] {
    std::array<Message, 4> messages;
    try {
      while (pair.node->receive(messages, 1'000'000) > 0) {
      }
    } catch (const host::Failure&) {
    }
    ended = true;
  });
  pair.node->close();
  receiver.join();
  EXPECT_TRUE(ended);
}

TEST(ShmChannel, RefusesARingThatCountsNonsense) {
  const auto slots = sample_memory();
  const ShmLayout layout{kSlots, kSampleBytes, kAnswerBytes};
  const auto memory = std::make_shared<SharedMemory>(layout.total(), host::kAnyNode);
  ShmChannel node(ShmChannel::Side::kNode, layout, memory, slots, 0, stride());
  auto& ring = *reinterpret_cast<MessageRing*>(memory->data());
  ring.posted.ring(layout.capacity() + 1);
  std::array<Message, 4> messages;
  EXPECT_THROW(node.receive(messages, 0), host::Failure);
  ring.items[0].message = {.slot = kSlots, .bytes = 1};  // no slot there is text for
  ring.items[0].number = 1;
  ring.posted.ring(1);
  EXPECT_THROW(node.receive(messages, 0), host::Failure);
}

TEST(SharedMemory, RefusesAFileThatMayShrinkOrIsTooSmall) {
  const SharedMemory memory(4096, host::kAnyNode);
  EXPECT_THROW(SharedMemory::map(memory.fd(), 8192), host::Failure);
  const int file = memfd_create("unsealed", 0);
  ASSERT_EQ(ftruncate(file, 8192), 0);
  EXPECT_THROW(SharedMemory::map(file, 4096), host::Failure);
  close(file);
}

TEST(Transactions, EndOnceAndInTheirOwnGeneration) {
  Transactions transactions(2);
  const auto first = transactions.take(), second = transactions.take();
  EXPECT_FALSE(transactions.has_credit());
  transactions.open(first, {.query = 11});
  transactions.open(second, {.query = 12});
  EXPECT_EQ(transactions.outstanding(), 2U);
  EXPECT_EQ(transactions.end(first.slot, first.tag + 1), nullptr);
  EXPECT_EQ(transactions.end(7, 1), nullptr);
  ASSERT_NE(transactions.end(first.slot, first.tag), nullptr);
  EXPECT_EQ(transactions.end(first.slot, first.tag), nullptr);  // not twice
  transactions.give_back(first.slot);
  const auto again = transactions.take();
  EXPECT_EQ(again.slot, first.slot);
  EXPECT_NE(again.tag, first.tag);
  std::vector<std::uint64_t> left;
  transactions.open(again, {.query = 13});
  transactions.end_all([&](const Transaction& transaction) { left.push_back(transaction.query); });
  EXPECT_EQ(left.size(), 2U);
  EXPECT_EQ(transactions.outstanding(), 0U);
}

// A Frontend of some samples with one connection to each node, every node with a system that sums what arrives.
struct Fabric {
  Fabric(Pair (*pair)(const SharedMemoryPointer&), std::size_t nodes)
      : frontend(loadtest::SampleLibrary(64, 64, kSampleBytes, loadtest::host_memory(), loadtest::fill_synthetic), 10) {
    for (std::size_t i = 0; i < nodes; ++i) {
      const auto slots = sample_memory();
      systems.push_back(std::make_unique<ChecksumSystem>(slots, kSampleBytes, stride()));
      sessions.push_back(std::make_unique<NodeSession>(*systems.back(), "node" + std::to_string(i)));
      Pair both = pair(slots);
      sessions.back()->add(std::move(both.node), kAnswerBytes, {});
      frontend.add(i, std::move(both.frontend), host::kAnyNode, {});
    }
    for (std::uint64_t i = 0; i < 64; ++i) samples.push_back(i);
    frontend.load(samples);
  }

  loadtest::ReplayResult run(std::size_t queries) {
    std::vector<std::uint64_t> indices;
    for (std::size_t i = 0; i < queries; ++i) indices.push_back(i % samples.size());
    return loadtest::replay(frontend, std::vector<std::int64_t>(queries, 0), indices,
                            {.coalesce = true, .flush = true, .keep = true, .limit = 60}, [] {});
  }

  std::vector<std::uint64_t> samples;
  std::vector<std::unique_ptr<ChecksumSystem>> systems;
  std::vector<std::unique_ptr<NodeSession>> sessions;
  NetworkSystem frontend;  // last: it says goodbye to the nodes' side first
};

std::string checksum(std::uint64_t sample) {
  std::vector<std::byte> bytes(kSampleBytes);
  loadtest::fill_synthetic(sample, bytes);
  const std::uint32_t sum = loadtest::crc32(bytes.data(), bytes.size());
  return {reinterpret_cast<const char*>(&sum), sizeof sum};
}

TEST_P(EveryTransport, EveryQueryHasOneAnswerOfItsOwnSample) {
  Fabric fabric(GetParam(), 2);
  EXPECT_EQ(fabric.frontend.name(), "Network SUT: node0, node1");
  for (int run = 0; run < 2; ++run) {
    const auto result = fabric.run(3000);
    EXPECT_EQ(result.failure, "");
    EXPECT_EQ(fabric.frontend.latencies().at(kAll).count(), 3000);
    for (std::size_t i = 0; i < 3000; ++i) {
      ASSERT_EQ(result.answers[i], 1U);
      ASSERT_EQ(result.data[i], checksum(i % 64));
    }
  }
  std::uint64_t posted = 0;
  for (const ConnectionCounters& counters : fabric.frontend.counters()) {
    posted += counters.posted;
    EXPECT_GT(counters.completed, 0U);
    EXPECT_EQ(counters.completed, counters.posted);
    EXPECT_EQ(counters.stale, 0U);
    EXPECT_EQ(counters.outstanding, 0U);
  }
  EXPECT_EQ(posted, 6000U);
}

TEST_P(EveryTransport, ALostNodeCostsItsQueriesAlone) {
  Fabric fabric(GetParam(), 2);
  std::atomic<bool> lost = false;
  std::jthread killer([&] {
    while (fabric.sessions[0]->sum(&ChannelCounters::received) < 100) std::this_thread::yield();
    fabric.frontend.lose(0, "node0 was killed");
    lost = true;
  });
  const auto result = fabric.run(20000);
  killer.join();
  ASSERT_TRUE(lost);
  std::size_t empty = 0;
  for (std::size_t i = 0; i < result.answers.size(); ++i) {
    ASSERT_EQ(result.answers[i], 1U);
    if (result.data[i].empty()) {
      ++empty;
    } else {
      ASSERT_EQ(result.data[i], checksum(i % 64));
    }
  }
  const auto counters = fabric.frontend.counters();
  EXPECT_EQ(counters[0].lost, empty);
  EXPECT_EQ(counters[0].reason, "node0 was killed");
  EXPECT_EQ(counters[1].reason, "");
  EXPECT_THROW(fabric.frontend.start([](auto) {}), host::Failure);  // until it is connected anew
  fabric.frontend.forget(0);
  EXPECT_EQ(fabric.run(100).failure, "");
}

TEST_P(EveryTransport, WithoutAnyNodeQueriesGetEmptyAnswersAndTheRunFails) {
  Fabric fabric(GetParam(), 1);
  std::jthread killer([&] {
    while (fabric.sessions[0]->sum(&ChannelCounters::received) < 100) std::this_thread::yield();
    fabric.frontend.lose(0, "node0 was killed");
  });
  const auto result = fabric.run(20000);
  for (const std::uint32_t answers : result.answers) ASSERT_EQ(answers, 1U);
  EXPECT_NE(result.failure.find("node0 was killed"), std::string::npos);
  EXPECT_FALSE(fabric.frontend.failed());  // that was told: the next run begins without it
}

// Keeps queries until it is told to give up; then it answers them as a system does that has failed.
class WaitingSystem : public loadtest::SystemUnderTest {
 public:
  std::string name() const override { return "waiting"; }
  void load(std::span<const std::uint64_t>) override {}
  void unload(std::span<const std::uint64_t>) override {}
  void start(loadtest::AnswerCallback answer) override { answer_ = std::move(answer); }
  void issue(std::span<const loadtest::Query> queries) override {
    for (const loadtest::Query& query : queries) waiting_.push_back({.id = query.id});
  }
  void flush() override {}
  void cancel() override {
    failed_ = true;
    answer_(std::exchange(waiting_, {}));
  }
  bool failed() const noexcept override { return failed_; }
  void stop() override { failed_ = false; }

 private:
  loadtest::AnswerCallback answer_;
  std::vector<loadtest::Answer> waiting_;  // of the one connection's thread
  std::atomic<bool> failed_ = false;
};

TEST_P(EveryTransport, ARunThatWasGivenUpLeavesNoFailureToTheNext) {
  const auto slots = sample_memory();
  WaitingSystem system;
  NodeSession session(system, "node0");
  NetworkSystem frontend(loadtest::SampleLibrary(1, 1, kSampleBytes, loadtest::host_memory(), loadtest::fill_synthetic),
                         0);
  Pair both = GetParam()(slots);
  session.add(std::move(both.node), kAnswerBytes, {});
  frontend.add(0, std::move(both.frontend), host::kAnyNode, {});
  const std::vector<std::uint64_t> samples{0};
  frontend.load(samples);
  std::atomic<std::size_t> answers = 0;
  frontend.start([&](std::span<const loadtest::Answer> some) { answers += some.size(); });
  const std::vector<loadtest::Query> queries{{1, 0}, {2, 0}, {3, 0}};
  frontend.issue(queries);
  frontend.cancel();
  while (answers.load() < queries.size()) std::this_thread::yield();
  EXPECT_FALSE(frontend.failed());  // whoever runs the next one may ask before it starts
  frontend.stop();
  EXPECT_FALSE(frontend.failed());
}

}  // namespace
}  // namespace lanewise::dispatch
