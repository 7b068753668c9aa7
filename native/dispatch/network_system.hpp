// The Frontend: to a load generator a system under test like any other, which sends every query to a node. It neither
// batches, pads, caches nor processes anything; what is posted together shares a doorbell and nothing else.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/connection.hpp"
#include "loadtest/sample_library.hpp"

namespace lanewise::dispatch {

struct ConnectionCounters {
  std::size_t number = 0;  // of the connection, as in QueryTimes
  std::size_t node = 0;
  std::uint64_t answered = 0;  // queries of this run
  std::uint64_t posted = 0, completed = 0, bytes_out = 0, bytes_in = 0, doorbells = 0, wakeups = 0;
  std::uint64_t outstanding = 0, lost = 0, stale = 0;
  std::string reason;  // why it is lost; empty while it is not
};

class NetworkSystem : public loadtest::SystemUnderTest {
 public:
  // The first `traced` queries of a run are kept.
  NetworkSystem(loadtest::SampleLibrary library, std::size_t traced);
  ~NetworkSystem() override;

  // Before the first run, or between two. `numa`: NUMA node of the connection's NIC, kAnyNode where that is not known.
  void add(std::size_t node, std::unique_ptr<Channel> channel, int numa, std::vector<int> cpus);
  // From any thread: the node is gone. Its queries get empty answers, and the others go on.
  void lose(std::size_t node, const std::string& reason);
  // Between two runs: forgets the connections of a node, so that new ones can take their place.
  void forget(std::size_t node);

  // Costs a round trip to every node, and names each: "Network SUT: a, b".
  std::string name() const override;
  void load(std::span<const std::uint64_t> samples) override { library_.load(samples); }
  void unload(std::span<const std::uint64_t> samples) override { library_.unload(samples); }
  void start(loadtest::AnswerCallback answer) override;
  void issue(std::span<const loadtest::Query> queries) override;
  void flush() override { tell_nodes(MessageKind::kFlush); }
  void cancel() override;
  bool failed() const noexcept override { return failed_.load(); }
  void stop() override;

  // Where samples lie: what transports register. Of one NUMA node, as all connections read it.
  std::span<const std::byte> memory() const { return memory_; }
  std::vector<ConnectionCounters> counters() const;
  FrontendLatencies latencies(std::optional<std::size_t> node = {}) const;  // of one, or of all together
  std::vector<QueryTimes> trace() const;
  double stalled() const { return static_cast<double>(stalled_.load()) * 1e-9; }  // s that issue() waited for credits

 private:
  struct Route {  // a connection as it is chosen by
    std::unique_ptr<Connection> connection;
    int distance;           // of its NIC from the library's memory; 0: on the same NUMA node
    RoundTrip newest = {};  // that was taken into account
    bool posted = false;    // since its doorbell was rung
  };
  struct Node {
    std::size_t number;
    std::vector<Route> routes;
    std::size_t turn = 0;  // the first of them to look at
  };
  struct Choice {
    Node* node = nullptr;
    Route* route = nullptr;         // null: none is usable
    std::uint64_t outstanding = 0;  // at its node, over all its connections
  };

  Choice pick() noexcept;
  Choice pick_of(Node& node) noexcept;
  bool post(const loadtest::Query& query, std::int64_t now);
  void ring_doorbells();
  bool wait_for_credit();
  void answer_empty(std::span<const loadtest::Query> queries);
  void tell_nodes(MessageKind kind);
  std::vector<Connection*> one_of_each_node() const;
  template <class Each>
  void each_connection(Each&& each) const {
    for (const Node& node : nodes_) {
      for (const Route& route : node.routes) each(*route.connection);
    }
  }
  bool any_connection(bool (Connection::*is)() const noexcept) const noexcept;

  loadtest::SampleLibrary library_;
  std::span<const std::byte> memory_;
  Inbox inbox_;
  std::vector<Node> nodes_;      // by number
  std::size_t connections_ = 0;  // that ever were
  // Of the issuing thread, during a run:
  NodeBalance balance_;
  std::vector<Candidate> candidates_;
  std::vector<Choice> choices_;  // of each candidate
  std::size_t turn_ = 0;         // the first node to look at
  std::size_t unrung_ = 0;       // posted since the doorbells were rung
  std::atomic<bool> running_ = false, cancelled_ = false, failed_ = false;
  std::atomic<std::int64_t> stalled_ = 0;
  std::vector<QueryTimes> trace_;
  std::atomic<std::size_t> traced_ = 0;
};

}  // namespace lanewise::dispatch
