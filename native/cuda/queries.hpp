// Scattered samples of a pinned library, brought together on a GPU batch by batch: what a service does for its queries.
#pragma once

#include <memory>
#include <string>

#include "cuda/run.hpp"

namespace lanewise::cuda {

struct Queries {
  int device = 0;
  int node = host::kAnyNode;  // of the library
  std::string method;         // calls, batch, kernel, staged
  std::size_t library = 8192;
  std::size_t bytes = 150528;  // of a sample, a multiple of 16
  int batch = 128;
  int batches = 8;
};

// A run of one stream with a timestamp for each batch.
std::unique_ptr<Run> prepare_queries(const std::shared_ptr<Engine>& engine, const Queries& queries);

}  // namespace lanewise::cuda
