#include "dispatch/node.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstring>

#include "host/failure.hpp"
#include "host/guarded.hpp"
#include "host/memory.hpp"
#include "loadtest/clock.hpp"

namespace lanewise::dispatch {

using loadtest::Answer;
using loadtest::now_ns;

void NodeSession::add(std::unique_ptr<Channel> channel, std::size_t answer_bytes, std::vector<int> cpus) {
  Link& link = *links_.emplace_back(std::make_unique<Link>());
  const std::uint32_t count = channel->slots().count;
  if (links_.size() > 1) {
    const Link& before = *links_[links_.size() - 2];
    link.first = before.first + static_cast<std::uint32_t>(before.tags.size());
  }
  link.channel = std::move(channel);
  link.answer_bytes = answer_bytes;
  link.answers.resize(count * answer_bytes + kTextBytes);
  link.channel->register_source(link.answers);
  link.tags.resize(count);
  link.arrived.resize(count);
  link.queries.reserve(kMessages);
  link.thread = std::thread([this, &link, cpus = std::move(cpus)] {
    host::guarded(
        [&] {
          host::pin_thread(cpus);
          receive(link);
        },
        [this](const host::Failure& failure) { end(failure.what()); });
  });
  pthread_setname_np(link.thread.native_handle(),
                     ("queries" + std::to_string(links_.size() - 1)).substr(0, 15).c_str());
}

void NodeSession::receive(Link& link) {
  loadtest::wake_promptly();
  std::vector<Message> messages(kMessages);
  while (!closing_.load()) {
    const std::size_t count = link.channel->receive(messages, kPatience);
    if (count > 0) deal_with(link, std::span<const Message>(messages).first(count));
  }
}

void NodeSession::deal_with(Link& link, std::span<const Message> messages) {
  const std::int64_t now = now_ns();
  link.queries.clear();
  const auto issue = [&] {
    received_.fetch_add(link.queries.size(), std::memory_order_relaxed);  // before it may have been answered
    if (!link.queries.empty()) system_.issue(link.queries);
    link.queries.clear();
  };
  for (const Message& message : messages) {
    if (message.kind != MessageKind::kQuery) {
      issue();
      obey(link, message.kind);
      continue;
    }
    if (message.slot >= link.tags.size()) throw host::Failure("the Frontend sent a query without a slot", "");
    link.tags[message.slot] = message.tag;
    link.arrived[message.slot] = now;
    const std::uint64_t number = link.first + message.slot;
    link.queries.push_back({number, number});
  }
  issue();
}

void NodeSession::obey(Link& link, MessageKind kind) {
  switch (kind) {
    case MessageKind::kStart:
      return reply(link, start());
    case MessageKind::kStop:
      return reply(link, stop());
    case MessageKind::kName:
      return reply(link, name_);
    case MessageKind::kFlush:
      return system_.flush();
    case MessageKind::kCancel:
      return system_.cancel();
    default:
      throw host::Failure("the Frontend sent what only a node sends", "use the same version of Lanewise on both sides");
  }
}

void NodeSession::reply(Link& link, const std::string& text) {
  const std::scoped_lock lock(link.posting);
  std::byte* const at = link.answers.data() + link.tags.size() * link.answer_bytes;
  const std::size_t bytes = std::min(text.size(), kTextBytes);
  std::memcpy(at, text.data(), bytes);
  const auto slot = static_cast<std::uint32_t>(link.tags.size());
  link.channel->post({.slot = slot, .bytes = static_cast<std::uint32_t>(bytes), .kind = MessageKind::kReply}, at);
  link.channel->ring();
}

// What went wrong; empty if nothing did.
std::string NodeSession::start() {
  const std::scoped_lock lock(running_mutex_);
  if (running_) return "a run goes on already";
  std::string problem;
  host::guarded([this] { system_.start([this](std::span<const Answer> answers) { answer(answers); }); },
                [&](const host::Failure& failure) { problem = failure.what(); });
  running_ = problem.empty();
  return problem;
}

std::string NodeSession::stop() {
  const std::scoped_lock lock(running_mutex_);
  std::string problem;
  if (!std::exchange(running_, false)) return problem;
  host::guarded([this] { system_.stop(); }, [&](const host::Failure& failure) { problem = failure.what(); });
  return problem;
}

NodeSession::Link& NodeSession::link_of(std::uint64_t slot) {
  const auto after =
      std::ranges::upper_bound(links_, slot, {}, [](const auto& link) { return std::uint64_t{link->first}; });
  return **std::prev(after);
}

// Called by threads of the system; all that came over one connection goes back by one doorbell.
void NodeSession::answer(std::span<const Answer> answers) {
  while (!answers.empty()) {
    Link& link = link_of(answers.front().id);
    const auto other = std::ranges::find_if_not(
        answers, [&](const Answer& each) { return each.id >= link.first && each.id < link.first + link.tags.size(); });
    const auto count = static_cast<std::size_t>(other - answers.begin());
    host::guarded([&] { post_answers(link, answers.first(count)); },
                  [this](const host::Failure& failure) { end(failure.what()); });
    answers = answers.subspan(count);
  }
}

void NodeSession::post_answers(Link& link, std::span<const Answer> answers) {
  if (closing_.load(std::memory_order_relaxed)) return;
  const auto kind = system_.failed() ? MessageKind::kFailed : MessageKind::kAnswer;
  const std::int64_t now = now_ns();
  const std::scoped_lock lock(link.posting);
  for (const Answer& each : answers) {
    const auto slot = static_cast<std::uint32_t>(each.id - link.first);
    if (each.bytes > link.answer_bytes) {
      throw host::Failure("an answer of " + std::to_string(each.bytes) + " B where " +
                              std::to_string(link.answer_bytes) + " B were agreed",
                          "please report this");
    }
    std::byte* const at = link.answers.data() + slot * link.answer_bytes;
    if (each.bytes > 0) std::memcpy(at, each.data, each.bytes);
    link.channel->post({.slot = slot,
                        .tag = link.tags[slot],
                        .bytes = static_cast<std::uint32_t>(each.bytes),
                        .kind = kind,
                        .time = now - link.arrived[slot]},
                       at);
  }
  answered_.fetch_add(answers.size(), std::memory_order_relaxed);
  link.channel->ring();
}

void NodeSession::end(const std::string& reason) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (reason_.empty() && !closing_.load()) reason_ = reason;
  }
  closing_.store(true);
  for (const auto& link : links_) link->channel->close();
}

std::string NodeSession::reason() const {
  const std::scoped_lock lock(mutex_);
  return reason_;
}

void NodeSession::close() noexcept {
  end("closed");
  for (const auto& link : links_) {
    if (link->thread.joinable()) link->thread.join();
  }
  host::guarded(
      [this] {
        if (running_) system_.cancel();
        stop();
      },
      [](const host::Failure&) {});
}

std::uint64_t NodeSession::sum(std::atomic<std::uint64_t> ChannelCounters::* counter) const {
  std::uint64_t sum = 0;
  for (const auto& link : links_) sum += (link->channel->counters().*counter).load();
  return sum;
}

}  // namespace lanewise::dispatch
