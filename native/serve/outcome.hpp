// What a simulated run gives.
#pragma once

#include <cstdint>
#include <vector>

#include "serve/histogram.hpp"

namespace lanewise::serve {

struct ServiceOutcome {
  std::int64_t issued = 0;  // queries
  std::int64_t answered = 0;
  std::int64_t counted = 0;  // answered queries that were scheduled after `skip`
  std::int64_t late = 0;     // of those, above the bound
  std::int64_t batches = 0;
  std::int64_t samples = 0;  // served
  double last_answer = 0.0;  // s
  double sum = 0.0;          // of counted latencies, s
  Histogram latency;         // of counted samples; a query of one sample is its sample
};

// Times of one batch, and of the samples in it.
struct TracedBatch {
  std::int32_t worker = 0;
  double formed = 0.0, copied = 0.0, started = 0.0, served = 0.0, done = 0.0;
  std::vector<double> scheduled, landed;
};

struct Outcome {
  std::vector<ServiceOutcome> services;
  std::vector<double> moved;               // bytes of each flow class
  std::vector<std::vector<double>> steps;  // bytes of each flow class in each interval
  std::vector<double> busy;                // s of each GPU
  std::vector<std::vector<double>> gpu_steps;
  std::vector<TracedBatch> trace;
  double end = 0.0;                 // s at which the last thing happened
  std::int64_t most_in_flight = 0;  // samples
  bool ended_early = false;         // by a service's late_limit
};

}  // namespace lanewise::serve
