// What the other side says is not trusted; streams over a socket pair move what they say they moved.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <new>
#include <thread>

#include "network/end.hpp"
#include "network/tcp_blocks.hpp"
#include "network/tcp_ping.hpp"
#include "network/tcp_stream.hpp"
#include "network/verbs_address.hpp"

namespace lanewise::network {
namespace {

const std::string kGid = "fe800000000000000000000000000001";

VerbsAddress good() { return {kGid, 3, 5, 16, 0x1A2B3C, 1 << 20, 7, {17, 18}}; }

template <typename Change>
void expect_refused(Change change) {
  VerbsAddress address = good();
  change(address);
  EXPECT_THROW(check_address(address, 2), host::Failure);
}

TEST(VerbsAddress, IsCheckedFieldByField) {
  EXPECT_NO_THROW(check_address(good(), 2));
  expect_refused([](VerbsAddress& a) { a.gid = ""; });
  expect_refused([](VerbsAddress& a) { a.gid = std::string(32, 'z'); });
  expect_refused([](VerbsAddress& a) { a.gid[5] = ' '; });
  expect_refused([](VerbsAddress& a) { a.gid[0] = '-'; });
  expect_refused([](VerbsAddress& a) { a.gid[1] = '\0'; });
  expect_refused([](VerbsAddress& a) { a.lid = -1; });
  expect_refused([](VerbsAddress& a) { a.lid = 1 << 16; });
  expect_refused([](VerbsAddress& a) { a.mtu = 0; });
  expect_refused([](VerbsAddress& a) { a.mtu = 6; });
  expect_refused([](VerbsAddress& a) { a.reads = -1; });
  expect_refused([](VerbsAddress& a) { a.psn = 1 << 24; });
  expect_refused([](VerbsAddress& a) { a.pairs = {17}; });
  expect_refused([](VerbsAddress& a) { a.pairs[1] = 1 << 24; });
}

TEST(VerbsAddress, GidIsReadAsItIsWritten) {
  const GidBytes bytes = gid_bytes(kGid);
  EXPECT_EQ(bytes[0], 0xfe);
  EXPECT_EQ(bytes[1], 0x80);
  EXPECT_EQ(bytes[15], 1);
}

TEST(Stages, KeepTheFirstThingThatAThreadThrows) {
  Stages stages(1);
  stages.guard([] { throw std::bad_alloc(); });
  stages.guard([] { throw host::Failure("second", ""); });
  try {
    stages.check();
    FAIL() << "nothing was kept";
  } catch (const host::Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("bad_alloc"), std::string::npos);
  }
}

class Sockets : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, both_.data()), 0); }
  void TearDown() override {
    for (const int socket : both_) close(socket);
  }

  std::array<int, 2> both_{};
};

network::Setup messages(std::size_t bytes, std::uint64_t seed = 0) { return {bytes, -1, {}, seed}; }

template <typename Ready>
void wait_for(Ready ready) {
  while (!ready()) std::this_thread::yield();
}

TEST_F(Sockets, AStreamVerifiesItsDataAndCountsTheSameOnBothSides) {
  TcpStream receiver({both_[1]}, false, messages(1 << 16, 9), false);
  TcpStream sender({both_[0]}, true, messages(1 << 16, 9), false);
  wait_for([&] { return sender.ready() && receiver.ready(); });
  receiver.go();
  sender.go();
  wait_for([&] { return receiver.counters().bytes[0] > (8U << 20); });
  sender.stop();
  wait_for([&] { return sender.done() && receiver.done(); });
  EXPECT_EQ(sender.counters().bytes, receiver.counters().bytes);
}

TEST_F(Sockets, BlocksArriveAtTheirPlacesAndTheEndIsSeen) {
  TcpBlocks receiver(both_[1], false, messages(3000, 9), 300, 64);
  TcpBlocks sender(both_[0], true, messages(3000, 9), 300, 64);
  for (int transfers = 0; transfers < 3; ++transfers) EXPECT_GT(sender.transfer().seconds, 0);
  wait_for([&] { return receiver.ready(); });
  receiver.check();
  sender.stop();
  wait_for([&] { return receiver.done(); });
}

TEST_F(Sockets, BlocksOfAnotherPatternAreRefusedAndAReceiverMayLeave) {
  auto receiver = std::make_unique<TcpBlocks>(both_[1], false, messages(100, 1), 7, 3);
  TcpBlocks sender(both_[0], true, messages(100, 2), 7, 3);
  sender.transfer();
  EXPECT_THROW(receiver->check(), host::Failure);
  receiver.reset();
  shutdown(both_[1], SHUT_RDWR);
  EXPECT_THROW(sender.transfer(), host::Failure);
}

TEST_F(Sockets, AStreamOfAnotherPatternIsRefused) {
  TcpStream receiver({both_[1]}, false, messages(4096, 1), false);
  TcpStream sender({both_[0]}, true, messages(4096, 2), false);
  EXPECT_THROW(wait_for([&] { return receiver.ready(); }), host::Failure);
}

TEST_F(Sockets, APingIsAnswered) {
  TcpPing answers(both_[1], false, messages(64));
  TcpPing asks(both_[0], true, messages(64));
  wait_for([&] { return asks.ready(); });
  asks.go();
  std::size_t trips = 0;
  wait_for([&] { return (trips += asks.take().count()) > 100; });
  asks.stop();
}

TEST_F(Sockets, AFriendThatLeavesIsNoEndOfTheProcess) {
  TcpStream receiver({both_[1]}, false, messages(4096), false);
  shutdown(both_[0], SHUT_RDWR);
  EXPECT_THROW(wait_for([&] { return receiver.ready(); }), host::Failure);
}

}  // namespace
}  // namespace lanewise::network
