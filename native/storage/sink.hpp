// Where data goes on to after it has been read into host memory: nowhere, other host memory, or a GPU.
#pragma once

#include <cstddef>

namespace lanewise::storage {

class Sink {
 public:
  virtual ~Sink() = default;
  // Called once by each thread that will use it.
  virtual void enter() {}
  // Copies what lies in a slot on, and returns when it is there.
  virtual void take(std::size_t slot, const std::byte* from, std::size_t bytes) = 0;
  // Copies back what a slot's data became, to be checked.
  virtual void give(std::size_t slot, std::byte* to, std::size_t bytes) = 0;
};

}  // namespace lanewise::storage
