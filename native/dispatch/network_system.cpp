#include "dispatch/network_system.hpp"

#include <algorithm>

#include "host/failure.hpp"
#include "host/guarded.hpp"
#include "host/memory.hpp"
#include "loadtest/clock.hpp"

namespace lanewise::dispatch {

namespace {

using loadtest::now_ns;
using loadtest::Query;

// So many share a doorbell at most: the first of many is on its way while the others are posted.
constexpr std::size_t kGroup = 16;
constexpr std::int64_t kCreditPatience = 10'000'000;  // ns between two looks whether the run was given up

// Which of so many follows in turn; a division would cost more.
std::size_t next(std::size_t turn, std::size_t count) { return turn + 1 < count ? turn + 1 : 0; }

host::Failure lost_node(const Connection& connection) {
  return {connection.reason(), "start it again; a load test that is run again connects anew"};
}

}  // namespace

NetworkSystem::NetworkSystem(loadtest::SampleLibrary library, std::size_t traced)
    : library_(std::move(library)), trace_(traced) {
  memory_ = {library_.on(host::kAnyNode), library_.resident() * library_.stride()};
  inbox_.failed = [this](std::size_t) {
    if (!cancelled_.load()) failed_.store(true);  // a system that is to give up answers in the same way
  };
  if (traced == 0) return;
  inbox_.trace = [this](const QueryTimes& times) {
    const std::size_t index = traced_.fetch_add(1, std::memory_order_relaxed);
    if (index < trace_.size()) trace_[index] = times;
  };
}

NetworkSystem::~NetworkSystem() { nodes_.clear(); }

void NetworkSystem::add(std::size_t node, std::unique_ptr<Channel> channel, int numa, std::vector<int> cpus) {
  if (running_.load()) throw host::Failure("a connection cannot join a run", "connect before it");
  channel->register_source(memory_);
  // All of it is touched by now; where it lies does not depend on what this process is bound to.
  const int of_memory = host::node_of(memory_.data(), memory_.size());
  const bool far = numa != host::kAnyNode && of_memory != host::kAnyNode && numa != of_memory;
  auto at = std::ranges::lower_bound(nodes_, node, {}, &Node::number);
  if (at == nodes_.end() || at->number != node) at = nodes_.insert(at, Node{.number = node, .routes = {}});
  at->routes.push_back(
      {std::make_unique<Connection>(connections_++, node, std::move(channel), inbox_, std::move(cpus)), far ? 1 : 0});
}

void NetworkSystem::lose(std::size_t node, const std::string& reason) {
  each_connection([&](Connection& connection) {
    if (connection.node() == node) connection.lose(reason);
  });
}

void NetworkSystem::forget(std::size_t node) {
  if (running_.load()) throw host::Failure("a node cannot leave a run", "wait for its end");
  std::erase_if(nodes_, [node](const Node& each) { return each.number == node; });
}

std::vector<Connection*> NetworkSystem::one_of_each_node() const {
  std::vector<Connection*> firsts;
  for (const Node& node : nodes_) {
    const auto first = std::ranges::find_if(node.routes, [](const Route& route) { return route.connection->there(); });
    if (first != node.routes.end()) firsts.push_back(first->connection.get());
  }
  return firsts;
}

bool NetworkSystem::any_connection(bool (Connection::*is)() const noexcept) const noexcept {
  return std::ranges::any_of(nodes_, [is](const Node& node) {
    return std::ranges::any_of(node.routes, [is](const Route& route) { return (*route.connection.*is)(); });
  });
}

std::string NetworkSystem::name() const {
  std::string text = "Network SUT:";
  for (Connection* const connection : one_of_each_node()) {
    text += (text.back() == ':' ? " " : ", ") + connection->ask(MessageKind::kName);
  }
  return text;
}

void NetworkSystem::start(loadtest::AnswerCallback answer) {
  if (running_.load()) throw host::Failure("the system runs already", "stop it first");
  if (nodes_.empty()) throw host::Failure("no node is connected", "name one or more: --nodes HOST:PORT");
  each_connection([](Connection& connection) {
    if (connection.lost()) throw lost_node(connection);
    connection.clear_statistics();
  });
  // No run depends on what was measured in another.
  balance_.reset(nodes_.size());
  inbox_.compares = nodes_.size() > 1;
  turn_ = 0;
  candidates_.reserve(nodes_.size());
  choices_.reserve(nodes_.size());
  inbox_.answer = std::move(answer);
  cancelled_ = failed_ = false;
  stalled_ = 0;
  traced_ = 0;
  running_.store(true);
  try {
    for (Connection* const connection : one_of_each_node()) {
      const std::string problem = connection->ask(MessageKind::kStart);
      if (!problem.empty()) throw host::Failure(problem, "look what the node says");
    }
  } catch (const host::Failure& failure) {
    const host::Failure first = failure;
    host::guarded([this] { stop(); }, [](const host::Failure&) {});
    throw host::Failure(first);
  }
}

// Of a node's usable connections the one with the fewest queries outstanding, of equals the nearest, of equals in turn.
NetworkSystem::Choice NetworkSystem::pick_of(Node& node) noexcept {
  if (node.routes.size() == 1) {
    Route& only = node.routes.front();
    return {&node, only.connection->usable() ? &only : nullptr, only.connection->outstanding()};
  }
  Choice choice{.node = &node};
  std::uint64_t least = 0;
  std::size_t turn = node.turn;
  for (std::size_t i = 0; i < node.routes.size(); ++i, turn = next(turn, node.routes.size())) {
    Route& route = node.routes[turn];
    const std::uint64_t outstanding = route.connection->outstanding();
    choice.outstanding += outstanding;
    if (!route.connection->usable()) continue;
    const Route* const best = choice.route;
    if (best != nullptr && std::pair(outstanding, route.distance) >= std::pair(least, best->distance)) continue;
    choice.route = &route;
    least = outstanding;
  }
  return choice;
}

// Of the node that is expected to answer first. Nodes are compared as wholes, since their connections share what is
// slow: a link, a network card, devices.
NetworkSystem::Choice NetworkSystem::pick() noexcept {
  if (nodes_.size() == 1) return pick_of(nodes_.front());
  candidates_.clear();
  choices_.clear();
  for (std::size_t i = 0, node = turn_; i < nodes_.size(); ++i, node = next(node, nodes_.size())) {
    for (Route& route : nodes_[node].routes) {
      const RoundTrip newest = route.connection->newest();
      if (newest == route.newest) continue;
      route.newest = newest;
      balance_.add(node, newest);
    }
    const Choice choice = pick_of(nodes_[node]);
    if (choice.route == nullptr) continue;
    candidates_.push_back({node, choice.outstanding, choice.route->distance});
    choices_.push_back(choice);
  }
  turn_ = next(turn_, nodes_.size());
  return candidates_.empty() ? Choice{} : choices_[balance_.choose(candidates_)];
}

// False: there is no credit, or no connection any more.
bool NetworkSystem::post(const Query& query, std::int64_t now) {
  const std::uint32_t slot = library_.slot(query.sample);
  const std::span<const std::byte> sample = slot == loadtest::SampleLibrary::kNotLoaded
                                                ? std::span<const std::byte>()
                                                : memory_.subspan(slot * library_.stride(), library_.bytes());
  for (Choice choice = pick(); choice.route != nullptr; choice = pick()) {
    if (!choice.route->connection->post(query, sample, now, choice.outstanding)) continue;  // it was lost just now
    choice.route->posted = true;
    choice.node->turn = next(choice.node->turn, choice.node->routes.size());
    if (++unrung_ >= kGroup) ring_doorbells();
    return true;
  }
  return false;
}

void NetworkSystem::ring_doorbells() {
  unrung_ = 0;
  for (Node& node : nodes_) {
    for (Route& route : node.routes) {
      if (std::exchange(route.posted, false)) route.connection->ring();
    }
  }
}

// False: none will come.
bool NetworkSystem::wait_for_credit() {
  const std::int64_t since = now_ns();
  bool came = false;
  while (!came && any_connection(&Connection::there) && !cancelled_.load()) {
    const std::uint32_t seen = inbox_.credits.count.load(std::memory_order_seq_cst);
    came = any_connection(&Connection::usable);
    if (!came) inbox_.credits.sleep(seen, kCreditPatience);
  }
  stalled_.fetch_add(now_ns() - since, std::memory_order_relaxed);
  return came;
}

void NetworkSystem::issue(std::span<const Query> queries) {
  const std::int64_t now = now_ns();
  while (!queries.empty()) {
    if (post(queries.front(), now)) {
      queries = queries.subspan(1);
      continue;
    }
    ring_doorbells();
    if (wait_for_credit()) continue;
    answer_empty(queries);
    break;
  }
  ring_doorbells();
}

// Queries that no node is left for, or that nobody waits for any more.
void NetworkSystem::answer_empty(std::span<const Query> queries) {
  if (!cancelled_.load()) failed_.store(true);
  std::vector<loadtest::Answer> answers;
  for (const Query& query : queries) answers.push_back({.id = query.id});
  inbox_.answer(answers);
}

void NetworkSystem::tell_nodes(MessageKind kind) {
  for (Connection* const connection : one_of_each_node()) connection->tell(kind);
}

void NetworkSystem::cancel() {
  if (cancelled_.exchange(true)) return;
  inbox_.credits.wake();
  tell_nodes(MessageKind::kCancel);
}

void NetworkSystem::stop() {
  running_.store(false);
  const bool failed = failed_.exchange(false);  // of this run alone: who runs the next one may ask before it starts
  std::string problem;
  for (Connection* const connection : one_of_each_node()) {
    try {
      const std::string text = connection->ask(MessageKind::kStop);
      if (problem.empty()) problem = text;
    } catch (const host::Failure&) {  // it died now: all its queries were answered, and the next start says so
    }
  }
  if (!problem.empty()) throw host::Failure(problem, "look what the node says");
  if (failed && !nodes_.empty() && !any_connection(&Connection::there)) {
    throw lost_node(*nodes_.front().routes.front().connection);
  }
}

std::vector<ConnectionCounters> NetworkSystem::counters() const {
  std::vector<ConnectionCounters> all;
  each_connection([&](const Connection& connection) {
    const ChannelCounters& counters = connection.counters();
    all.push_back({.number = connection.number(),
                   .node = connection.node(),
                   .answered = connection.answered(),
                   .posted = counters.posted.load(),
                   .completed = counters.received.load(),
                   .bytes_out = counters.bytes_out.load(),
                   .bytes_in = counters.bytes_in.load(),
                   .doorbells = counters.doorbells.load(),
                   .wakeups = counters.wakeups.load(),
                   .outstanding = connection.outstanding(),
                   .lost = connection.lost_queries(),
                   .stale = connection.stale(),
                   .reason = connection.lost() ? connection.reason() : ""});
  });
  return all;
}

FrontendLatencies NetworkSystem::latencies(std::optional<std::size_t> node) const {
  FrontendLatencies sum;
  each_connection([&](const Connection& connection) {
    if (node.has_value() && connection.node() != *node) return;
    const FrontendLatencies of_one = connection.latencies();
    for (std::size_t i = 0; i < kFrontendStages; ++i) sum[i].add(of_one[i]);
  });
  return sum;
}

std::vector<QueryTimes> NetworkSystem::trace() const {
  const auto kept = static_cast<std::ptrdiff_t>(std::min(traced_.load(), trace_.size()));
  return {trace_.begin(), trace_.begin() + kept};
}

}  // namespace lanewise::dispatch
