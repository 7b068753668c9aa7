#include "host/chase.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "host/failure.hpp"

namespace lanewise::host {

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kBatch = 1024;  // loads between two readings of the clock

}  // namespace

Chase::Chase(std::vector<Memory*> pieces)
    : pieces_(std::move(pieces)), lines_per_piece_(pieces_.empty() ? 0 : pieces_.front()->size() / kLine) {
  lines_ = lines_per_piece_ * pieces_.size();
  bool equal = lines_ > 0 && std::has_single_bit(lines_per_piece_) && std::has_single_bit(pieces_.size());
  for (const Memory* piece : pieces_) equal = equal && piece->size() == lines_per_piece_ * kLine;
  if (!equal) throw Failure("the memory of a chase is no power of two", "ask for a power of two");
  place_ = at(0);
}

std::byte* Chase::at(std::size_t line) const {
  return pieces_[line / lines_per_piece_]->data() + line % lines_per_piece_ * kLine;
}

// A linear congruential generator of full period: modulo 2^n, factor 1 modulo 4, odd summand.
std::size_t Chase::after(std::size_t line) const {
  return (line * 0x5851f42d4c957f2dULL + 0x14057b7ef767814fULL) & (lines_ - 1);
}

void Chase::fill(std::size_t piece) {
  for (std::size_t line = piece * lines_per_piece_; line < (piece + 1) * lines_per_piece_; ++line) {
    *reinterpret_cast<std::byte**>(at(line)) = at(after(line));
  }
}

std::size_t Chase::next(std::size_t line) const {
  const std::byte* link = *reinterpret_cast<std::byte**>(at(line % lines_));
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    const std::byte* first = pieces_[piece]->data();
    if (link >= first && link < first + pieces_[piece]->size()) {
      return piece * lines_per_piece_ + static_cast<std::size_t>(link - first) / kLine;
    }
  }
  throw Failure("a link leads out of the memory of a chase", "fill every piece first");
}

double Chase::run(int cpu, double seconds) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> batches;
  std::exception_ptr error;
  std::thread thread([&] {
    try {
      if (cpu >= 0) pin_thread({cpu});
      const auto begin = Clock::now();
      const auto end = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
      auto batch_begin = begin;
      do {
        std::byte* place = place_;
        for (std::size_t i = 0; i < kBatch; ++i) place = *reinterpret_cast<std::byte* volatile*>(place);
        place_ = place;
        const auto done = Clock::now();
        batches.push_back(std::chrono::duration<double, std::nano>(done - batch_begin).count());
        batch_begin = done;
      } while (batch_begin < end);
    } catch (...) {
      error = std::current_exception();
    }
  });
  thread.join();
  if (error) std::rethrow_exception(error);
  loads_ += kBatch * batches.size();
  const auto middle = batches.begin() + static_cast<std::ptrdiff_t>(batches.size() / 2);
  std::nth_element(batches.begin(), middle, batches.end());
  return *middle / static_cast<double>(kBatch);
}

bool Chase::verify() const {
  std::size_t line = 0;
  for (std::size_t i = 0; i < loads_ % lines_; ++i) line = after(line);
  return place_ == at(line);
}

}  // namespace lanewise::host
