// The threads that read and write: one keeps an io_uring filled, the other makes one I/O after the other.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/gpu_sink.hpp"
#include "storage/ring.hpp"
#include "storage/round.hpp"
#include "storage/sink.hpp"

namespace lanewise::storage {

// A buffer and the I/O that uses it.
struct Slot {
  std::size_t number = 0;       // counted over all threads
  std::uint64_t index = 0;      // of the I/O in the volume
  std::byte* buffer = nullptr;  // its own
  std::byte* data = nullptr;    // what is read into: the buffer, or straight where it ends
  std::vector<Piece> pieces;
  std::vector<std::uint64_t> moved;  // bytes of each piece that are there
  std::size_t open = 0;              // pieces that are not yet all there
  Clock::time_point started{};
};

class Worker {
 public:
  Worker(const Job& job, unsigned number, std::span<Slot> slots, Sink* sink);
  virtual ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // What the thread itself must do before the clock runs.
  virtual void enter();
  // Everything that is this thread's share of the round.
  virtual void work(Round& round) = 0;
  // How it reads, in words.
  virtual std::string how() const = 0;

 protected:
  bool begin(Round& round, Slot& slot);          // takes the next I/O into the slot; false where none is left
  void complete(Round& round, Slot& slot);       // its data is there: copy on, compare, count
  std::size_t bytes_of(const Slot& slot) const;  // that its I/O has in the buffer
  void without_reading(Round& round);            // all of a round that reads nothing
  [[noreturn]] void fail(const Round& round, const Piece& piece, std::uint64_t moved, int error) const;

  const Job& job_;
  const unsigned number_;
  const std::size_t volume_;
  const std::span<Slot> slots_;
  Sink* const sink_;

 private:
  void write_pattern(const Task& task, Slot& slot);
  void compare(Round& round, Slot& slot);
  void reread(const Slot& slot, const Piece& piece);

  std::optional<host::Memory> second_;
};

std::unique_ptr<Worker> ring_worker(const Job& job, unsigned number, std::span<Slot> slots, Sink* sink);
std::unique_ptr<Worker> sync_worker(const Job& job, unsigned number, std::span<Slot> slots, Sink* sink);
std::unique_ptr<Worker> cufile_worker(const Job& job, unsigned number, std::span<Slot> slots, Sink* sink);

}  // namespace lanewise::storage
