#include "dispatch/network_system.hpp"

#include <algorithm>
#include <set>

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

NetworkSystem::~NetworkSystem() { routes_.clear(); }

void NetworkSystem::add(std::size_t node, std::unique_ptr<Channel> channel, int distance, std::vector<int> cpus) {
  if (running_.load()) throw host::Failure("a connection cannot join a run", "connect before it");
  channel->register_source(memory_);
  routes_.push_back(
      {std::make_unique<Connection>(routes_.size(), node, std::move(channel), inbox_, std::move(cpus)), distance});
}

void NetworkSystem::lose(std::size_t node, const std::string& reason) {
  for (const Route& route : routes_) {
    if (route.connection->node() == node) route.connection->lose(reason);
  }
}

void NetworkSystem::forget(std::size_t node) {
  if (running_.load()) throw host::Failure("a node cannot leave a run", "wait for its end");
  std::erase_if(routes_, [node](const Route& route) { return route.connection->node() == node; });
}

std::vector<Connection*> NetworkSystem::one_of_each_node() const {
  std::vector<Connection*> firsts;
  std::set<std::size_t> nodes;
  for (const Route& route : routes_) {
    if (!route.connection->lost() && nodes.insert(route.connection->node()).second) {
      firsts.push_back(route.connection.get());
    }
  }
  return firsts;
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
  if (routes_.empty()) throw host::Failure("no node is connected", "name one or more: --nodes HOST:PORT");
  for (const Route& route : routes_) {
    if (route.connection->lost()) throw lost_node(*route.connection);
    route.connection->clear_statistics();
  }
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

// The usable connection with the fewest queries under way, of equals the nearest, of equals in turn.
NetworkSystem::Route* NetworkSystem::pick() noexcept {
  Route* best = nullptr;
  std::uint64_t least = 0;
  const std::size_t count = routes_.size(), first = count > 1 ? next_++ % count : 0;
  for (std::size_t i = 0; i < count; ++i) {
    Route& route = routes_[(first + i) % count];
    if (!route.connection->usable()) continue;
    const std::uint64_t load = route.connection->outstanding();
    if (best != nullptr && (load > least || (load == least && route.distance >= best->distance))) continue;
    best = &route;
    least = load;
  }
  return best;
}

// False: there is no credit, or no connection any more.
bool NetworkSystem::post(const Query& query, std::int64_t now) {
  const std::uint32_t slot = library_.slot(query.sample);
  const std::span<const std::byte> sample = slot == loadtest::SampleLibrary::kNotLoaded
                                                ? std::span<const std::byte>()
                                                : memory_.subspan(slot * library_.stride(), library_.bytes());
  while (Route* const route = pick()) {
    if (!route->connection->post(query, sample, now)) continue;  // it was lost just now
    route->posted = true;
    if (++unrung_ >= kGroup) ring_doorbells();
    return true;
  }
  return false;
}

void NetworkSystem::ring_doorbells() {
  unrung_ = 0;
  for (Route& route : routes_) {
    if (std::exchange(route.posted, false)) route.connection->ring();
  }
}

// False: none will come.
bool NetworkSystem::wait_for_credit() {
  const std::int64_t since = now_ns();
  const auto usable = [this] {
    return std::ranges::any_of(routes_, [](const Route& route) { return route.connection->usable(); });
  };
  const auto alive = [this] {
    return std::ranges::any_of(routes_, [](const Route& route) { return !route.connection->lost(); });
  };
  bool came = false;
  while (!came && alive() && !cancelled_.load()) {
    const std::uint32_t seen = inbox_.credits.count.load(std::memory_order_seq_cst);
    came = usable();
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
  const auto alive = std::ranges::find_if(routes_, [](const Route& route) { return !route.connection->lost(); });
  if (failed && !routes_.empty() && alive == routes_.end()) throw lost_node(*routes_.front().connection);
}

std::vector<ConnectionCounters> NetworkSystem::counters() const {
  std::vector<ConnectionCounters> all;
  for (const Route& route : routes_) {
    const Connection& connection = *route.connection;
    const ChannelCounters& counters = connection.counters();
    all.push_back({.node = connection.node(),
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
  }
  return all;
}

FrontendLatencies NetworkSystem::latencies(std::optional<std::size_t> node) const {
  FrontendLatencies sum;
  for (const Route& route : routes_) {
    if (node.has_value() && route.connection->node() != *node) continue;
    const FrontendLatencies of_one = route.connection->latencies();
    for (std::size_t i = 0; i < kFrontendStages; ++i) sum[i].add(of_one[i]);
  }
  return sum;
}

std::vector<QueryTimes> NetworkSystem::trace() const {
  const auto kept = static_cast<std::ptrdiff_t>(std::min(traced_.load(), trace_.size()));
  return {trace_.begin(), trace_.begin() + kept};
}

}  // namespace lanewise::dispatch
