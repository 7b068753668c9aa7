// The channel over RDMA, with a device that only this process has: what a group costs, that no queue overruns, and that
// neither a broken connection nor a peer without sense does harm.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "dispatch/network_system.hpp"
#include "dispatch_pairs.hpp"
#include "fake_verbs.hpp"
#include "host/failure.hpp"
#include "loadtest/cpu_copier_and_engine.hpp"

namespace lanewise::dispatch {
namespace {

constexpr std::uint32_t kCapacity = ring_capacity(kSlots);
constexpr std::uint32_t kMany = 500, kFitting = 90;  // the send queue holds 128 requests

class Verbs : public testing::Test {
 protected:
  void SetUp() override {
    fake_verbs::set_limits({});
    open();
  }
  void TearDown() override {
    fake_verbs::hold_completions(false);
    fake_verbs::set_limits({});
  }
  void open() {
    pair_ = connected_verbs_pair(slots_);
    pair_.frontend->register_source(sample_);
    pair_.node->register_source(sample_);
  }
  void query(std::uint32_t slot, std::uint32_t tag, std::uint32_t bytes = kSampleBytes) {
    pair_.frontend->post({.slot = slot, .tag = tag, .bytes = bytes, .kind = MessageKind::kQuery}, sample_.data());
  }
  // Whether the node has the messages from `first` on, in order.
  void expect_tags(std::uint32_t first, std::uint32_t count) {
    std::array<Message, 16> messages;
    for (std::uint32_t next = first; next < first + count;) {
      const std::size_t most = std::min<std::size_t>(messages.size(), first + count - next);
      const std::size_t got = pair_.node->receive(std::span(messages).first(most), kSoon);
      for (std::size_t i = 0; i < got; ++i) ASSERT_EQ(messages[i].tag, next++);
      taken_.store(next);
    }
  }
  // Posts one message a group, within its credits, more of them than the send queue holds.
  void post_many() {
    try {
      for (std::uint32_t tag = 0; tag < kMany; ++tag) {
        while (tag - taken_.load() >= kCapacity) std::this_thread::yield();
        query(0, tag, 0);
        pair_.frontend->ring();
      }
    } catch (const host::Failure& failure) {
      reason_ = failure.what();
    }
  }
  std::uint32_t number_of_node() { return pair_.node->address().queue_pair.pairs.front(); }

  SharedMemoryPointer slots_ = sample_memory();
  std::vector<std::byte> sample_ = std::vector<std::byte>(kSampleBytes, std::byte{7});
  VerbsPair pair_;
  std::string reason_;                    // why post_many() ended early
  std::atomic<std::uint32_t> taken_ = 0;  // tags below it
};

TEST_F(Verbs, AGroupIsOnePostOneCompletionAndOneEvent) {
  std::array<Message, 16> messages;
  EXPECT_EQ(pair_.node->receive(messages, 0), 0U);  // asks for an event
  const fake_verbs::Counts before = fake_verbs::counts();
  for (std::uint32_t i = 0; i < 10; ++i) query(i, i);
  pair_.frontend->ring();
  const fake_verbs::Counts after = fake_verbs::counts();
  EXPECT_EQ(after.posts - before.posts, 1U);
  EXPECT_EQ(after.work_requests - before.work_requests, 11U);  // the samples, and all their messages
  EXPECT_EQ(after.completions - before.completions, 1U);
  EXPECT_EQ(after.events - before.events, 1U);
  expect_tags(0, 10);
  EXPECT_EQ(pair_.node->receive(messages, kSoon), 0U);  // the event of a group that was found without it
  EXPECT_EQ(pair_.node->receive(messages, 0), 0U);
  EXPECT_EQ(pair_.node->counters().wakeups.load(), 1U);
  EXPECT_EQ(pair_.frontend->counters().doorbells.load(), 1U);
  pair_.frontend->ring();  // nothing was posted since
  EXPECT_EQ(fake_verbs::counts().posts, after.posts);
}

TEST_F(Verbs, ShortDataGoesWithTheRequestWhereTheDeviceTakesIt) {
  for (const std::uint32_t inlined : {2U, 0U}) {
    fake_verbs::set_limits({.inline_bytes = inlined == 0 ? 0U : 64U});
    open();
    const std::uint64_t before = fake_verbs::counts().inlined;
    query(5, 0, 64);
    pair_.frontend->ring();
    EXPECT_EQ(fake_verbs::counts().inlined - before, inlined);
    expect_tags(0, 1);
    EXPECT_EQ(pair_.node->slots().at(5)[63], std::byte{7});
  }
}

TEST_F(Verbs, MessagesAreInOrderWhereTheRingWraps) {
  for (std::uint32_t tag = 0; tag < 5 * kCapacity; tag += 7) {
    for (std::uint32_t i = 0; i < 7; ++i) query(i, tag + i);
    pair_.frontend->ring();
    expect_tags(tag, 7);
  }
}

// The device refuses a request for which its queue has no room.
TEST_F(Verbs, AGroupLongerThanTheSendQueueIsSentInParts) {
  fake_verbs::set_limits({.work_requests = 64, .completions = 64});
  open();
  for (std::uint32_t tag = 0; tag < kCapacity; ++tag) query(tag % kSlots, tag);
  pair_.frontend->ring();
  EXPECT_GT(pair_.frontend->counters().doorbells.load(), 1U);
  expect_tags(0, kCapacity);
}

TEST_F(Verbs, APosterWaitsUntilTheSendQueueHasRoom) {
  fake_verbs::hold_completions(true);
  std::jthread poster([this] { post_many(); });
  expect_tags(0, kFitting);
  fake_verbs::hold_completions(false);
  expect_tags(kFitting, kMany - kFitting);
  poster.join();
  EXPECT_EQ(reason_, "");
}

TEST_F(Verbs, CloseEndsAWaitingPoster) {
  fake_verbs::hold_completions(true);
  const std::uint64_t before = fake_verbs::counts().waits;
  std::jthread poster([this] { post_many(); });
  expect_tags(0, kFitting);
  while (fake_verbs::counts().waits == before) std::this_thread::yield();
  pair_.frontend->close();
  poster.join();
  EXPECT_EQ(reason_, "the connection was closed");
}

void expect_failure(const std::function<void()>& action, const std::string& part) {
  try {
    action();
    ADD_FAILURE() << "nothing failed";
  } catch (const host::Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find(part), std::string::npos) << failure.what();
  }
}

TEST_F(Verbs, AWriteThatFailsIsNamedToTheReceiver) {
  std::array<Message, 4> messages;
  EXPECT_EQ(pair_.frontend->receive(messages, 0), 0U);
  fake_verbs::fail_next(IBV_WC_RETRY_EXC_ERR);
  query(0, 0);
  pair_.frontend->ring();
  expect_failure([&] { pair_.frontend->receive(messages, kSoon); }, "transport retry counter exceeded");
}

TEST_F(Verbs, AClosedSideFailsTheWritesOfTheOther) {
  std::array<Message, 4> messages;
  pair_.node->close();
  EXPECT_EQ(pair_.node->receive(messages, kSoon), 0U);
  query(0, 0);
  pair_.frontend->ring();
  expect_failure([&] { pair_.frontend->receive(messages, kSoon); }, "transport retry counter exceeded");
  expect_failure([&] { pair_.node->post({}, nullptr); }, "closed");
}

TEST_F(Verbs, APeerWritesNowhereButItsSlotsAndItsRing) {
  VerbsChannelAddress beyond = pair_.node->address();
  beyond.queue_pair.memory += slots_->size();
  pair_.frontend->connect(beyond);
  std::array<Message, 4> messages;
  query(0, 0);
  pair_.frontend->ring();
  expect_failure([&] { pair_.frontend->receive(messages, kSoon); }, "remote access error");
}

TEST_F(Verbs, CountsThatCannotBeAreRefused) {
  std::array<Message, 4> messages;
  for (const std::uint32_t count : {0U, kCapacity + 1, UINT32_MAX}) {
    open();
    fake_verbs::arrive(number_of_node(), count);
    expect_failure([&] { pair_.node->receive(messages, 0); }, "without meaning");
  }
  open();
  fake_verbs::arrive(number_of_node(), 1, IBV_WC_RECV);  // a message that no write came with
  expect_failure([&] { pair_.node->receive(messages, 0); }, "without meaning");
}

TEST_F(Verbs, MessagesWithoutMeaningAreRefused) {
  std::array<Message, 4> messages;
  const std::array<Message, 3> senseless{{{.slot = 0, .kind = static_cast<MessageKind>(99)},
                                          {.slot = kSlots, .bytes = 1},  // queries have no text
                                          {.slot = 0, .bytes = kSampleBytes + 1}}};
  for (const Message& message : senseless) {
    open();
    std::memcpy(reinterpret_cast<void*>(pair_.node->address().ring), &message, sizeof message);
    fake_verbs::arrive(number_of_node(), 1);
    expect_failure([&] { pair_.node->receive(messages, 0); }, "without meaning");
  }
}

TEST_F(Verbs, TheLibraryIsRegisteredOnceForAllConnectionsOfANic) {
  pair_ = {};
  EXPECT_EQ(fake_verbs::counts().contexts, 0U);
  NetworkSystem system(loadtest::SampleLibrary(4, 4, kSampleBytes, loadtest::host_memory(), loadtest::fill_synthetic),
                       0);
  const void* const library = system.memory().data();
  std::vector<std::unique_ptr<VerbsChannel>> nodes;
  const auto connect = [&](std::size_t node, const char* device) {
    VerbsPair pair = connected_verbs_pair(slots_, device);
    nodes.push_back(std::move(pair.node));
    system.add(node, std::move(pair.frontend), 0, {});
  };
  for (const std::size_t node : {0U, 0U, 1U, 1U}) connect(node, fake_verbs::kDevice);
  EXPECT_EQ(fake_verbs::regions_at(library), 1U);
  EXPECT_EQ(fake_verbs::counts().contexts, 1U);
  connect(1, fake_verbs::kOtherDevice);
  EXPECT_EQ(fake_verbs::regions_at(library), 2U);
  system.forget(0);
  EXPECT_EQ(fake_verbs::regions_at(library), 2U);
  system.forget(1);
  EXPECT_EQ(fake_verbs::regions_at(library), 0U);
  nodes.clear();
  EXPECT_EQ(fake_verbs::counts().contexts, 0U);
}

// Memory that only a NIC reaches at its address, as a GPU's: the Frontend's samples lie in its dma-buf, here a file.
TEST_F(Verbs, SamplesAreWrittenToADmaBuf) {
  constexpr std::size_t kPage = 4096;
  const SharedMemoryPointer file = std::make_shared<SharedMemory>(kPage + kSlots * stride(), host::kAnyNode);
  const network::VerbsPort port{.device = fake_verbs::kDevice};
  const auto answers = std::make_shared<std::vector<std::byte>>(kSlots * kAnswerBytes + kTextBytes);
  const Slots far{.data = reinterpret_cast<std::byte*>(0x70'0000'0000 + kPage),
                  .count = kSlots,
                  .bytes = kSampleBytes,
                  .stride = stride()};
  VerbsChannelSetup setup{.port = port, .mine = far, .peers = answers_in(nullptr), .keeper = {}};
  setup.dma_buf = file->fd();
  setup.dma_buf_offset = kPage;
  pair_ = {make_verbs_channel({.port = port, .mine = answers_in(answers.get()), .peers = far, .keeper = answers}),
           make_verbs_channel(setup)};
  pair_.frontend->register_source(sample_);
  pair_.frontend->connect(pair_.node->address());
  pair_.node->connect(pair_.frontend->address());
  query(3, 0);
  pair_.frontend->ring();
  expect_tags(0, 1);
  const std::byte* const at = file->data() + kPage + 3 * stride();
  EXPECT_TRUE(std::equal(sample_.begin(), sample_.end(), at));
  EXPECT_EQ(at[-1], std::byte{0});
}

TEST_F(Verbs, AnAddressThatIsNotValidIsRefused) {
  VerbsChannelAddress peer = pair_.node->address();
  peer.queue_pair.pairs = {1, 2};
  expect_failure([&] { pair_.frontend->connect(peer); }, "2 queue pairs, not 1");
}

}  // namespace
}  // namespace lanewise::dispatch
