#include "host/work.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "host/failure.hpp"
#include "host/stores.hpp"

namespace lanewise::host {

namespace {

constexpr std::uint64_t kWritten = 0x5a5a5a5a5a5a5a5aULL;
constexpr std::uint64_t kSpoilt = 0xe1e1e1e1e1e1e1e1ULL;
constexpr std::size_t kSpoilStep = 4096;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::uint64_t pattern(std::uint64_t word) { return (word + 1) * 0x9e3779b97f4a7c15ULL; }

std::uint64_t sum_of(const std::byte* data, std::size_t bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(data);
  std::uint64_t a = 0, b = 0, c = 0, d = 0;
  for (std::size_t i = 0; i < bytes / 8; i += 4) {
    a += words[i];
    b += words[i + 1];
    c += words[i + 2];
    d += words[i + 3];
  }
  return a + b + c + d;
}

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kStep) stream_line(to + i, from + i);
  stream_fence();
}

void stream_fill(std::byte* to, std::size_t bytes) {
  alignas(64) std::byte line[kStep];
  std::memset(line, static_cast<int>(kWritten & 0xff), sizeof line);
  for (std::size_t i = 0; i < bytes; i += kStep) stream_line(to + i, line);
  stream_fence();
}

}  // namespace

bool has_streams() { return kStreams; }

void fill_pattern(Memory& memory) {
  auto* words = reinterpret_cast<std::uint64_t*>(memory.data());
  for (std::size_t i = 0; i < memory.size() / 8; ++i) words[i] = pattern(i);
}

void spoil(Memory& memory) {
  for (std::size_t byte = 0; byte < memory.size(); byte += kSpoilStep) {
    std::memcpy(memory.data() + byte, &kSpoilt, sizeof kSpoilt);
  }
}

Crew::Crew(std::vector<Pieces> threads, std::size_t block)
    : threads_(std::move(threads)), states_(threads_.size()), block_(block) {
  const auto usable = [&](const Memory* memory) { return memory->size() >= block_ && memory->size() % block_ == 0; };
  for (const Pieces& pieces : threads_) {
    const bool equal =
        pieces.sources.empty() || pieces.targets.empty() || pieces.sources.size() == pieces.targets.size();
    if (block_ == 0 || block_ % kStep != 0 || !equal || (pieces.sources.empty() && pieces.targets.empty()) ||
        !std::ranges::all_of(pieces.sources, usable) || !std::ranges::all_of(pieces.targets, usable)) {
      throw Failure("the memory of a thread does not hold whole blocks", "ask for more memory or fewer threads");
    }
  }
}

std::size_t Crew::blocks(const Pieces& pieces) const {
  const std::vector<Memory*>& any = pieces.sources.empty() ? pieces.targets : pieces.sources;
  return any.size() * (any.front()->size() / block_);
}

std::byte* Crew::at(const std::vector<Memory*>& pieces, std::size_t block) const {
  const std::size_t per_piece = pieces.front()->size() / block_;
  return pieces[block / per_piece]->data() + block % per_piece * block_;
}

Timestamps Crew::work_until(Work work, const Pieces& pieces, State& state, double end) const {
  const std::size_t all = blocks(pieces);
  Timestamps timestamps{now()};
  timestamps.reserve(4096);
  do {
    const std::size_t block = state.done++ % all;
    switch (work) {
      case Work::kCopy:
        std::memcpy(at(pieces.targets, block), at(pieces.sources, block), block_);
        break;
      case Work::kStreamCopy:
        stream_copy(at(pieces.targets, block), at(pieces.sources, block), block_);
        break;
      case Work::kRead:
        state.sum += sum_of(at(pieces.sources, block), block_);
        break;
      case Work::kWrite:
        std::memset(at(pieces.targets, block), static_cast<int>(kWritten & 0xff), block_);
        break;
      case Work::kStreamWrite:
        stream_fill(at(pieces.targets, block), block_);
        break;
    }
    timestamps.push_back(now());
  } while (timestamps.back() < end);
  return timestamps;
}

Window Crew::run(Work work, double seconds) {
  std::vector<Timestamps> timestamps(threads_.size());
  std::vector<std::exception_ptr> errors(threads_.size());
  std::vector<std::thread> running;
  std::atomic<std::size_t> ready{0};
  std::atomic<int> go{0};
  double end = 0.0;
  const auto work_thread = [&](std::size_t i) {
    try {
      if (threads_[i].cpu >= 0) pin_thread({threads_[i].cpu});
    } catch (...) {
      errors[i] = std::current_exception();
    }
    ++ready;
    ready.notify_one();
    go.wait(0);
    if (!errors[i]) timestamps[i] = work_until(work, threads_[i], states_[i], end);
  };
  std::exception_ptr failure;
  try {
    for (std::size_t i = 0; i < threads_.size(); ++i) running.emplace_back(work_thread, i);
  } catch (const std::system_error& error) {  // the threads that wait must be released all the same
    failure = std::make_exception_ptr(
        system_failure("a thread cannot be started", error.code().value(), "ask for fewer threads"));
  }
  for (std::size_t count = 0; (count = ready.load()) < running.size();) ready.wait(count);
  end = failure ? 0.0 : now() + seconds;
  go = 1;
  go.notify_all();
  for (std::thread& thread : running) thread.join();
  if (failure) std::rethrow_exception(failure);
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return common_window(timestamps, static_cast<double>(block_));
}

void Crew::begin_check() {
  for (State& state : states_) {
    state.since = state.done;
    state.sum = 0;
  }
}

bool Crew::holds_block(Work work, const Pieces& pieces, std::size_t block) const {
  const std::byte* target = at(pieces.targets, block);
  if (work == Work::kCopy || work == Work::kStreamCopy) {
    return std::memcmp(target, at(pieces.sources, block), block_) == 0;
  }
  const auto* words = reinterpret_cast<const std::uint64_t*>(target);
  return std::all_of(words, words + block_ / 8, [](std::uint64_t word) { return word == kWritten; });
}

bool Crew::holds(Work work, std::size_t thread, std::size_t piece) const {
  const Pieces& pieces = threads_.at(thread);
  const State& state = states_.at(thread);
  const std::size_t all = blocks(pieces);
  const std::size_t per_piece = all / pieces.targets.size();
  const std::size_t worked = state.done - state.since;
  for (std::size_t block = piece * per_piece; block < (piece + 1) * per_piece; ++block) {
    // How many blocks after the first since `begin_check` this one comes.
    const std::size_t turn = (block + all - state.since % all) % all;
    if (turn < worked && !holds_block(work, pieces, block)) return false;
  }
  return true;
}

bool Crew::adds_up(std::size_t thread) const {
  const Pieces& pieces = threads_.at(thread);
  const State& state = states_.at(thread);
  const std::size_t words = block_ / 8;  // even
  const std::size_t per_piece = pieces.sources.front()->size() / block_;
  std::uint64_t sum = 0;
  for (std::size_t i = state.since; i < state.done; ++i) {
    // An arithmetic series modulo 2^64: pattern(w) = (w + 1) * pattern(0).
    const std::uint64_t first = i % blocks(pieces) % per_piece * words + 1;
    sum += words / 2 * (2 * first + words - 1) * pattern(0);
  }
  return sum == state.sum;
}

}  // namespace lanewise::host
