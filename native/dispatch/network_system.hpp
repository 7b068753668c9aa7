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
  std::size_t node = 0;
  std::uint64_t posted = 0, completed = 0, bytes_out = 0, bytes_in = 0, doorbells = 0, wakeups = 0;
  std::uint64_t outstanding = 0, lost = 0, stale = 0;
  std::string reason;  // why it is lost; empty while it is not
};

class NetworkSystem : public loadtest::SystemUnderTest {
 public:
  // The first `traced` queries of a run are kept.
  NetworkSystem(loadtest::SampleLibrary library, std::size_t traced);
  ~NetworkSystem() override;

  // Before the first run, or between two. `distance`: how far the connection's NIC is from the library, 0 for near.
  void add(std::size_t node, std::unique_ptr<Channel> channel, int distance, std::vector<int> cpus);
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
    int distance;
    bool posted = false;  // since its doorbell was rung
  };

  Route* pick() noexcept;
  bool post(const loadtest::Query& query, std::int64_t now);
  void ring_doorbells();
  bool wait_for_credit();
  void answer_empty(std::span<const loadtest::Query> queries);
  void tell_nodes(MessageKind kind);
  std::vector<Connection*> one_of_each_node() const;

  loadtest::SampleLibrary library_;
  std::span<const std::byte> memory_;
  Inbox inbox_;
  std::vector<Route> routes_;
  std::size_t next_ = 0;
  std::size_t unrung_ = 0;  // posted since the doorbells were rung
  std::atomic<bool> running_ = false, cancelled_ = false, failed_ = false;
  std::atomic<std::int64_t> stalled_ = 0;
  std::vector<QueryTimes> trace_;
  std::atomic<std::size_t> traced_ = 0;
};

}  // namespace lanewise::dispatch
