// Latency of memory by a chain of loads: each line holds the address of the next, in an order no prefetcher guesses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/memory.hpp"

namespace lanewise::host {

class Chase {
 public:
  // A number of pieces and a size of each that are powers of two: then one cycle goes through every line.
  explicit Chase(std::vector<Memory*> pieces);

  // Writes the links that start in one piece; all pieces must be filled before the first run.
  void fill(std::size_t piece);

  // Follows the links on `cpu` (-1: any) for about that long, from where it stopped: nanoseconds a load, the median
  // of batches, so that what interrupts the thread does not count.
  double run(int cpu, double seconds);

  // Whether the chase is where the formula of the links says it should after that many loads.
  bool verify() const;

  // The line that the link in a line leads to.
  std::size_t next(std::size_t line) const;

  std::size_t lines() const { return lines_; }
  std::size_t loads() const { return loads_; }

 private:
  std::byte* at(std::size_t line) const;
  std::size_t after(std::size_t line) const;

  std::vector<Memory*> pieces_;
  std::size_t lines_per_piece_;  // lines in a piece
  std::size_t lines_;            // in all
  std::size_t loads_ = 0;
  std::byte* place_;
};

}  // namespace lanewise::host
