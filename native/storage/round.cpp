#include "storage/round.hpp"

#include <algorithm>

namespace lanewise::storage {

namespace {

constexpr std::uint64_t kMostReserved = 1U << 22;  // I/O times for which memory is reserved before the clock runs

double between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Round::Round(const Job& job, const Task& task, unsigned workers)
    : job_(job),
      task_(task),
      wanted_(task.most > 0 ? std::min(task.most, task.count) : task.count),
      shuffle_(task.count, task.seed),
      cursors_(job.volumes.size()),
      tallies_(workers) {
  for (Cursor& cursor : cursors_) cursor.left = wanted_;
  for (Tally& tally : tallies_) {
    tally.bytes = std::make_unique<std::atomic<std::uint64_t>[]>(job.files.size());
    tally.times.reserve(std::min(2 * wanted_ * job.volumes.size() / workers + 64, kMostReserved));
  }
}

void Round::begin() {
  begun_ = Clock::now();
  if (task_.seconds > 0) {
    deadline_ = begun_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(task_.seconds));
  }
}

std::optional<std::uint64_t> Round::next(std::size_t volume) {
  if (stopped_.load(std::memory_order_relaxed)) return std::nullopt;
  if (task_.seconds > 0) {
    // The window ends now, not at the deadline: the I/O that has just ended counts, so its time must count.
    if (const auto now = Clock::now(); now >= deadline_) {
      close_window(now);
      return std::nullopt;
    }
  }
  std::uint64_t index = cursors_[volume].next.fetch_add(1, std::memory_order_relaxed);
  if (task_.seconds > 0)
    index %= task_.count;
  else if (index >= wanted_)
    return std::nullopt;
  return (task_.random ? shuffle_(index) : index) * job_.io;
}

void Round::done(unsigned worker, std::size_t volume, const std::vector<Piece>& pieces, Clock::time_point started) {
  Tally& tally = tallies_[worker];
  tally.last = Clock::now();
  tally.times.push_back(static_cast<float>(between(started, tally.last)));
  for (const Piece& piece : pieces) tally.bytes[piece.file].fetch_add(piece.bytes, std::memory_order_release);
  if (task_.seconds <= 0 && cursors_[volume].left.fetch_sub(1) == 1) close_window(tally.last);
}

void Round::close_window(Clock::time_point now) {
  const std::lock_guard only_one(mutex_);
  if (window_) return;
  window_ = now;
  in_window_ = bytes();
}

void Round::fail(const host::Failure& failure) {
  const std::lock_guard only_one(mutex_);
  if (!failure_) failure_ = failure;
  stop();
}

double Round::seconds() const { return between(begun_, Clock::now()); }

std::vector<std::uint64_t> Round::bytes() const {
  std::vector<std::uint64_t> sum(job_.files.size(), 0);
  for (const Tally& tally : tallies_) {
    for (std::size_t file = 0; file < sum.size(); ++file)
      sum[file] += tally.bytes[file].load(std::memory_order_acquire);
  }
  return sum;
}

Outcome Round::outcome() {
  if (failure_) throw host::Failure(*failure_);
  Clock::time_point last = begun_;
  Outcome outcome;
  for (Tally& tally : tallies_) {
    last = std::max(last, tally.last);
    outcome.times.insert(outcome.times.end(), tally.times.begin(), tally.times.end());
  }
  close_window(last);
  outcome.bytes = bytes();
  outcome.in_window = in_window_;
  outcome.window = between(begun_, *window_);
  outcome.makespan = between(begun_, last);
  return outcome;
}

}  // namespace lanewise::storage
