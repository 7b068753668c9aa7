// What is simulated: services, the pools and workers that answer them, and background traffic.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace lanewise::serve {

inline constexpr std::int32_t kNoFlow = -1;

// One transfer of a query. It holds a slot from `setup` s, and `setup_each` s for every sample, before its first byte
// to its last one, and arrives `latency` s later. `alone` is the rate in B/s that it reaches without other traffic;
// `bytes` are those of a sample.
struct Leg {
  std::int32_t flow_class = kNoFlow;
  double bytes = 0.0;
  double setup = 0.0;
  double setup_each = 0.0;
  double latency = 0.0;
  double alone = std::numeric_limits<double>::infinity();
  std::int32_t slots = 1;  // transfers under way at once
  std::int32_t most = 1;   // samples in one transfer
};

// A GPU as one service uses it: batches are copied, wait for the GPU, are served and return.
struct Worker {
  std::int32_t pool = 0;
  std::int32_t gpu = 0;
  std::int32_t buffers = 1;  // batches between the start of their copy and their end on the GPU
  Leg copy;                  // the batch, gathered
  Leg back;
  std::vector<double> times;  // s, of batches of 1, 2, ... samples
  // Batches that the GPU runs at once. Those share it: none is slowed as long as their `shares` add up to 1 or less,
  // all are slowed alike otherwise. A share is what a batch of 1, 2, ... samples uses of the GPU; none means all of it.
  std::int32_t streams = 1;
  std::vector<double> shares = {};
};

// Workers that share one queue of samples; `arrive` brings each sample there.
struct Pool {
  std::int32_t service = 0;
  Leg arrive;
};

enum class Arrivals : std::int32_t {
  kPoisson,   // Server: queries at random times, whatever the service does
  kOneByOne,  // SingleStream, MultiStream: the next query when the last one is answered
  kAtOnce,    // Offline: all samples are there from the start
};
enum class Dispatch : std::int32_t { kLeastOutstanding, kRoundRobin, kRandom };
// From when a batch's time-out counts.
enum class Waiting : std::int32_t {
  kOldest,  // since its oldest sample came
  // Since the worker was free to take one: with an empty queue it waits anew. Any free worker may get a full batch.
  kWorker,
};

// A query is `samples` samples; it is answered when the last of them is.
struct Service {
  Arrivals arrivals = Arrivals::kPoisson;
  double rate = 0.0;         // queries/s, Poisson only
  std::int32_t samples = 1;  // of a query
  std::int64_t total = 0;    // samples, kAtOnce only
  double bound = 0.0;        // s
  Dispatch dispatch = Dispatch::kLeastOutstanding;
  std::int32_t batch = 1;
  double timeout = 0.0;  // s that a batch waits to fill
  Waiting waiting = Waiting::kOldest;
  bool in_turn = false;  // a pool's workers take batches in turn as long as they can, not the one with the fewest
  // Coefficients of variation: of a batch's time, and of what one more sample adds to it in a full batch.
  double variation = 0.0;
  double sample_variation = 0.0;
  std::int64_t late_limit = -1;  // end the run once more queries are late; -1: never
};

// Background traffic: `bytes` from `start` on, again every `period` s (0: once).
struct Background {
  std::int32_t flow_class = 0;
  double bytes = 0.0;
  double start = 0.0;
  double period = 0.0;
};

struct Scenario {
  std::vector<Service> services;
  std::vector<Pool> pools;
  std::vector<Worker> workers;
  std::vector<Background> background;
  std::int32_t gpus = 0;
  double duration = 1.0;   // s in which queries begin; those that began are answered
  double skip = 0.0;       // s at the start that are not counted
  std::int32_t steps = 0;  // intervals of `duration` for which use is kept
  std::int64_t trace = 0;  // samples whose times are kept
  std::uint64_t seed = 1;
};

}  // namespace lanewise::serve
