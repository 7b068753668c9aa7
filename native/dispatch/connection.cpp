#include "dispatch/connection.hpp"

#include <pthread.h>

#include <chrono>

#include "host/failure.hpp"
#include "host/guarded.hpp"
#include "host/memory.hpp"
#include "loadtest/clock.hpp"

namespace lanewise::dispatch {

namespace {

using loadtest::now_ns;

constexpr std::chrono::seconds kReplyLimit{60};  // for a node to begin or end a run

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

Connection::Connection(std::size_t number, std::size_t node, std::unique_ptr<Channel> channel, Inbox& inbox,
                       std::vector<int> cpus)
    : number_(number),
      node_(node),
      channel_(std::move(channel)),
      inbox_(inbox),
      transactions_(channel_->slots().count),
      messages_(kMessages) {
  answers_.reserve(kMessages);
  ended_.reserve(kMessages);
  thread_ = std::thread([this, cpus = std::move(cpus)] {
    host::guarded(
        [&] {
          host::pin_thread(cpus);
          receive_answers();
        },
        [this](const host::Failure& failure) { lose(failure.what()); });
    answer_lost();
  });
  pthread_setname_np(thread_.native_handle(), ("answers" + std::to_string(number)).substr(0, 15).c_str());
}

Connection::~Connection() {
  stopping_.store(true);
  channel_->close();
  thread_.join();
}

// The issuing thread and the one that ends what a lost connection has open: one of both sees the other.
bool Connection::enter() noexcept {
  posting_.store(true, std::memory_order_seq_cst);
  if (!lost_.load(std::memory_order_seq_cst)) return true;
  leave();
  return false;
}

bool Connection::post(const loadtest::Query& query, std::span<const std::byte> sample, std::int64_t issued,
                      std::uint64_t ahead) {
  if (!enter()) return false;
  const auto taken = transactions_.take();
  // Before post(): a thread that sends what a full socket held back may send this at once, and its answer may come.
  transactions_.open(taken, {.query = query.id, .issued = issued, .posted = now_ns()},
                     static_cast<std::uint32_t>(ahead));
  host::guarded(
      [&] {
        channel_->post({.slot = taken.slot,
                        .tag = taken.tag,
                        .bytes = static_cast<std::uint32_t>(sample.size()),
                        .kind = MessageKind::kQuery},
                       sample.data());
      },
      [this](const host::Failure& failure) { lose(failure.what()); });
  // If that failed, the query is answered with the others of this connection.
  leave();
  return true;
}

void Connection::ring() {
  if (lost_.load(std::memory_order_relaxed)) return;
  host::guarded([this] { channel_->ring(); }, [this](const host::Failure& failure) { lose(failure.what()); });
}

void Connection::tell(MessageKind kind) {
  if (!enter()) return;
  host::guarded(
      [&] {
        channel_->post({.kind = kind}, nullptr);
        channel_->ring();
      },
      [this](const host::Failure& failure) { lose(failure.what()); });
  leave();
}

std::string Connection::ask(MessageKind kind) {
  {
    const std::scoped_lock lock(mutex_);
    has_reply_ = false;
  }
  tell(kind);
  std::unique_lock lock(mutex_);
  if (!replied_.wait_for(lock, kReplyLimit, [this] { return has_reply_ || lost_.load(); })) {
    throw host::Failure("a node did not answer within " + std::to_string(kReplyLimit.count()) + " s",
                        "look whether it still runs and what it says");
  }
  if (!has_reply_) throw host::Failure(reason_, "look whether the node still runs and what it says");
  return reply_;
}

void Connection::receive_answers() {
  loadtest::wake_promptly();
  while (!stopping_.load() && !lost_.load()) {
    const std::size_t count = channel_->receive(messages_, kPatience);
    if (count > 0) deal_with(std::span<const Message>(messages_).first(count));
  }
}

void Connection::deal_with(std::span<const Message> messages) {
  const std::int64_t now = now_ns();
  const Slots& slots = channel_->slots();
  answers_.clear();
  ended_.clear();
  bool failed = false;
  for (const Message& message : messages) {
    if (message.kind != MessageKind::kAnswer && message.kind != MessageKind::kFailed) continue;
    const Transaction* const transaction = transactions_.end(message.slot, message.tag);
    if (transaction == nullptr) {
      stale_.fetch_add(1);
      continue;
    }
    failed = failed || message.kind == MessageKind::kFailed;
    const bool empty = message.bytes == 0;
    answers_.push_back({transaction->query, empty ? nullptr : slots.at(message.slot), message.bytes});
    ended_.push_back({message.slot, {number_, transaction->issued, transaction->posted, now, message.time}});
  }
  if (failed) inbox_.failed(number_);
  if (!answers_.empty()) {
    if (inbox_.compares && !failed) note_round_trip();  // before the answers: who waits for one issues the next query
    {
      const std::scoped_lock lock(counting_);
      inbox_.answer(answers_);
      note_times();
    }
    for (const Ended& ended : ended_) transactions_.give_back(ended.slot);
    inbox_.credits.ring();
  }
  for (const Message& message : messages) {
    if (message.kind == MessageKind::kReply) take_reply(message);
  }
}

void Connection::note_round_trip() noexcept {
  std::int64_t time = 0;
  std::uint64_t ahead = 0;
  for (const auto& [slot, times] : ended_) {
    time += times.answered - times.posted;
    ahead += transactions_.ahead(slot);
  }
  const auto count = static_cast<float>(ended_.size());
  transactions_.note({static_cast<float>(ahead) / count, static_cast<float>(time) / count});
}

// After the answers are on their way: nobody waits for these.
void Connection::note_times() {
  for (const auto& [slot, times] : ended_) {
    const std::int64_t whole = times.answered - times.issued, dispatch = times.posted - times.issued;
    latencies_[kDispatched].add(seconds(dispatch));
    latencies_[kFabric].add(seconds(std::max<std::int64_t>(0, whole - dispatch - times.at_node)));
    latencies_[kAtNode].add(seconds(times.at_node));
    latencies_[kAll].add(seconds(whole));
    if (inbox_.trace) inbox_.trace(times);
  }
}

void Connection::take_reply(const Message& message) {
  const std::scoped_lock lock(mutex_);
  reply_.assign(reinterpret_cast<const char*>(channel_->slots().at(message.slot)), message.bytes);
  has_reply_ = true;
  replied_.notify_all();
}

void Connection::lose(const std::string& reason) {
  if (stopping_.load()) return;
  {
    const std::scoped_lock lock(mutex_);
    if (lost_.exchange(true, std::memory_order_seq_cst)) return;
    reason_ = reason;
    replied_.notify_all();
  }
  channel_->close();
}

// What a lost connection still owes: every query has its answer, these an empty one.
void Connection::answer_lost() {
  if (!lost_.load()) return;
  while (posting_.load(std::memory_order_seq_cst)) std::this_thread::yield();
  answers_.clear();
  transactions_.end_all([this](const Transaction& transaction) { answers_.push_back({.id = transaction.query}); });
  lost_queries_.fetch_add(answers_.size());
  if (!answers_.empty() && inbox_.answer) inbox_.answer(answers_);
  inbox_.credits.ring();
}

std::string Connection::reason() const {
  const std::scoped_lock lock(mutex_);
  return reason_;
}

FrontendLatencies Connection::latencies() const {
  const std::scoped_lock lock(counting_);
  return latencies_;
}

std::uint64_t Connection::answered() const {
  const std::scoped_lock lock(counting_);
  return static_cast<std::uint64_t>(latencies_[kAll].count());
}

void Connection::clear_statistics() {
  const std::scoped_lock lock(counting_);
  latencies_ = {};
  lost_queries_ = 0;
  stale_ = 0;
}

}  // namespace lanewise::dispatch
