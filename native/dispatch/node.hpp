// An Accelerator node: queries of all its connections go to one system under test, whose sample library are the slots
// that the Frontend fills; its answers go back the way that their queries came.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dispatch/channel.hpp"
#include "loadtest/system.hpp"

namespace lanewise::dispatch {

// One Frontend's session with this node. Sample and id of a query are the number of its slot, counted over all
// connections.
class NodeSession {
 public:
  // The system must outlive it; `name` is what the Frontend's name for this node is to be.
  NodeSession(loadtest::SystemUnderTest& system, std::string name) : system_(system), name_(std::move(name)) {}
  ~NodeSession() { close(); }
  NodeSession(const NodeSession&) = delete;
  NodeSession& operator=(const NodeSession&) = delete;

  // All before the first query. Slots of one connection follow those of the one before; `cpus`: where its thread stays.
  void add(std::unique_ptr<Channel> channel, std::size_t answer_bytes, std::vector<int> cpus);

  // Why it ended; empty while it goes on.
  std::string reason() const;
  // Ends it: a run that goes on is given up.
  void close() noexcept;

  // Queries so far.
  std::uint64_t received() const noexcept { return received_.load(); }
  std::uint64_t answered() const noexcept { return answered_.load(); }
  // A counter of its channels' over all of them.
  std::uint64_t sum(std::atomic<std::uint64_t> ChannelCounters::* counter) const;

 private:
  struct Link {
    std::vector<std::byte> answers;    // of each slot, until the next query has it; then room for the text of a reply
    std::unique_ptr<Channel> channel;  // behind what it may have registered
    std::uint32_t first = 0;           // its first slot, in the count over all connections
    std::size_t answer_bytes = 0;
    std::vector<std::uint32_t> tags;    // of each slot
    std::vector<std::int64_t> arrived;  // ns
    std::mutex posting;                 // several threads of the system answer
    std::thread thread;
    std::vector<loadtest::Query> queries;
  };

  void receive(Link& link);
  void deal_with(Link& link, std::span<const Message> messages);
  void obey(Link& link, MessageKind kind);
  void reply(Link& link, const std::string& text);
  void answer(std::span<const loadtest::Answer> answers);
  void post_answers(Link& link, std::span<const loadtest::Answer> answers);
  std::string start();
  std::string stop();
  void end(const std::string& reason) noexcept;
  Link& link_of(std::uint64_t slot);

  loadtest::SystemUnderTest& system_;
  std::string name_;
  std::vector<std::unique_ptr<Link>> links_;
  std::mutex running_mutex_;
  bool running_ = false;
  std::atomic<bool> closing_ = false;
  std::atomic<std::uint64_t> received_ = 0, answered_ = 0;
  mutable std::mutex mutex_;
  std::string reason_;
};

}  // namespace lanewise::dispatch
