// Threads that copy, read or write memory at once, each pinned, each with its own pieces; the caller times nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/memory.hpp"
#include "host/window.hpp"

namespace lanewise::host {

enum class Work { kCopy, kStreamCopy, kRead, kWrite, kStreamWrite };

// Whether this build has stores past the caches for this CPU.
bool has_streams();

// What one thread works on: pieces of source and target of equal size, taken in turn, block by block.
struct Pieces {
  int cpu = -1;  // -1: wherever the system puts it
  std::vector<Memory*> sources;
  std::vector<Memory*> targets;
};

class Crew {
 public:
  // Every thread needs at least one piece; every piece holds whole blocks of `block` bytes (a multiple of 64).
  Crew(std::vector<Pieces> threads, std::size_t block);

  // All threads begin together and work for about that long, from where they stopped the last time.
  Window run(Work work, double seconds);

  // What is verified begins here; spoil all targets before.
  void begin_check();

  // Whether a target holds what the runs since `begin_check` copied (from sources filled by fill_pattern) or wrote.
  bool holds(Work work, std::size_t thread, std::size_t piece) const;

  // Whether what the runs since `begin_check` read adds up to what fill_pattern wrote.
  bool adds_up(std::size_t thread) const;

  std::size_t threads() const { return threads_.size(); }

 private:
  struct State {
    std::size_t done = 0;   // blocks since the start
    std::size_t since = 0;  // blocks at the last begin_check
    std::uint64_t sum = 0;  // of what was read since
  };

  std::size_t blocks(const Pieces& pieces) const;
  std::byte* at(const std::vector<Memory*>& pieces, std::size_t block) const;
  bool holds_block(Work work, const Pieces& pieces, std::size_t block) const;
  Timestamps work_until(Work work, const Pieces& pieces, State& state, double end) const;

  std::vector<Pieces> threads_;
  std::vector<State> states_;
  std::size_t block_;
};

// Words that no two lines of a piece share, so that a copy to a wrong place is detected.
void fill_pattern(Memory& memory);

// Fills every page with values that no work leaves behind.
void spoil(Memory& memory);

}  // namespace lanewise::host
