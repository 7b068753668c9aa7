// The Frontend's side of one connection: its transactions, and the thread that takes the answers.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dispatch/channel.hpp"
#include "dispatch/doorbell.hpp"
#include "dispatch/transactions.hpp"
#include "loadtest/latencies.hpp"
#include "loadtest/system.hpp"

namespace lanewise::dispatch {

// Where a query's time goes, then all of it: until its sample is on its way, on the fabric (there and back), at the
// node.
enum FrontendStage : std::size_t { kDispatched, kFabric, kAtNode, kAll, kFrontendStages };
constexpr std::array<const char*, kFrontendStages> kFrontendStageNames{"dispatch", "fabric", "node", "total"};
using FrontendLatencies = std::array<loadtest::Latencies, kFrontendStages>;

// When a query got where; ns of this machine's clock, but for the time at the node.
struct QueryTimes {
  std::size_t connection = 0;
  std::int64_t issued = 0, posted = 0, answered = 0, at_node = 0;
};

// What connections share with the system that they belong to.
struct Inbox {
  loadtest::AnswerCallback answer;                     // during a run
  std::function<void(std::size_t connection)> failed;  // the node says that its system has failed
  std::function<void(const QueryTimes&)> trace;        // may be empty
  bool compares = false;                               // nodes by their round trips
  Doorbell credits;                                    // rung when a slot is free again
};

class Connection {
 public:
  // `node`: which one it leads to; `cpus`: where its thread stays (none: anywhere).
  Connection(std::size_t number, std::size_t node, std::unique_ptr<Channel> channel, Inbox& inbox,
             std::vector<int> cpus);
  ~Connection();

  // The issuing thread alone:
  bool usable() const noexcept { return !lost_.load(std::memory_order_acquire) && transactions_.has_credit(); }
  // Posts a sample for a query, with so many outstanding at its node; false where the connection was just lost, and the
  // query is not its any more.
  bool post(const loadtest::Query& query, std::span<const std::byte> sample, std::int64_t issued, std::uint64_t ahead);
  // The means of queries that came back together, the last that did; in ns.
  RoundTrip newest() const noexcept { return transactions_.newest(); }
  // The peer sees what was posted.
  void ring();
  // Asks the node something, and returns its reply; host::Failure if none comes in time, or the connection is lost.
  std::string ask(MessageKind kind);
  void tell(MessageKind kind);

  // From any thread:
  bool lost() const noexcept { return lost_.load(); }
  bool there() const noexcept { return !lost(); }
  std::string reason() const;  // why it is lost
  void lose(const std::string& reason);
  std::uint64_t outstanding() const noexcept { return transactions_.outstanding(); }
  std::size_t number() const noexcept { return number_; }
  std::size_t node() const noexcept { return node_; }
  const ChannelCounters& counters() const { return channel_->counters(); }
  std::uint64_t lost_queries() const noexcept { return lost_queries_.load(); }
  std::uint64_t stale() const noexcept { return stale_.load(); }
  FrontendLatencies latencies() const;
  std::uint64_t answered() const;
  void clear_statistics();

 private:
  struct Ended {  // a transaction whose answer came
    std::uint32_t slot;
    QueryTimes times;
  };

  void receive_answers();
  void deal_with(std::span<const Message> messages);
  void note_times();
  void note_round_trip() noexcept;
  void take_reply(const Message& message);
  void answer_lost();
  bool enter() noexcept;
  void leave() noexcept { posting_.store(false, std::memory_order_release); }

  std::size_t number_, node_;
  std::unique_ptr<Channel> channel_;
  Inbox& inbox_;
  Transactions transactions_;
  std::atomic<bool> posting_ = false;  // the issuing thread is at it
  std::atomic<bool> lost_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> lost_queries_ = 0, stale_ = 0;

  // Of the receiving thread.
  std::vector<Message> messages_;
  std::vector<loadtest::Answer> answers_;
  std::vector<Ended> ended_;

  // Held from before an answer goes on until it is counted: who reads after the last answer misses none.
  mutable std::mutex counting_;
  FrontendLatencies latencies_;

  mutable std::mutex mutex_;  // what follows
  std::condition_variable replied_;
  std::string reason_;
  std::string reply_;
  bool has_reply_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace lanewise::dispatch
