// A CUDA driver without GPUs: what the real one would hold, in ordinary memory. Strict, so that misuse shows.
//
// Environment, read by cuInit: FAKE_CUDA_GPUS=2, FAKE_CUDA_MEMORY=bytes a GPU, FAKE_CUDA_NO_PEER=0:1,1:2,
// FAKE_CUDA_CORRUPT=1 (the middle byte of every copy between GPUs is wrong), FAKE_CUDA_SPIN_TIMEOUT=1 (every hold times
// out at once), FAKE_CUDA_HOLD_MS (longest hold instead of the one asked for), FAKE_CUDA_QUEUE (entries of a stream),
// FAKE_CUDA_NOISE=0.02 (relative spread of times), FAKE_CUDA_VERSION=13000, FAKE_CUDA_JIT_ERROR=1,
// FAKE_CUDA_STAGED_WAITS=1 (a copy between GPUs without peer access is queued when its turn has come),
// FAKE_CUDA_DMA_BUF=0 (no memory is exported), FAKE_CUDA_RDMA_ORDERING=0 (what a NIC wrote has to be flushed),
// FAKE_CUDA_RDMA_FLUSHES=0 (and cannot be), FAKE_CUDA_FAIL=name:n (the n-th call of that function fails).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/api.hpp"

namespace fake {

using namespace lanewise::cuda;

constexpr CUresult kInvalidValue = 1, kInvalidDevice = 101, kInvalidPtx = 218, kInvalidContext = 201,
                   kInvalidHandle = 400, kNotFound = 500, kIllegalAddress = 700, kCaptureUnsupported = 900,
                   kUnknown = 999;

struct Stream {
  int device;
  std::deque<std::function<void()>> work;
  bool busy = false, stop = false;
  double now = 0;                                                    // virtual seconds
  std::uint64_t batched_to = 0;                                      // the last destination of a batch
  std::optional<std::vector<std::function<void(Stream&)>>> capture;  // what it is given goes there instead
  std::mutex lock;
  std::condition_variable changed;
  std::thread thread;

  explicit Stream(int of);
  ~Stream();
  void push(std::function<void()> item);  // waits while the queue is full, as the driver does
  void drain();

 private:
  void serve();
};

struct Event {
  int device;
  bool recorded = false, pending = false;
  double at = 0;
};

struct Range {
  std::size_t bytes;
  int device;     // -1: registered host memory
  int file = -1;  // of a device's memory: what a dma-buf of it is
};

struct Config {
  int gpus = 2, version = 13000;
  std::size_t memory = std::size_t{1} << 30, queue = 1024;
  std::set<std::pair<int, int>> no_peer;
  std::string corrupt = "nowhere";  // of data to a GPU, from one, or between two: in, out, peers
  bool staged_waits = false, spin_timeout = false, jit_error = false;
  double hold = 0, noise = 0;
  bool dma_buf = true;
  int rdma_ordering = 100, rdma_flushes = 1;
  std::string fail;
  int fail_at = 0;
};

// What a stream was given during a capture; launched as a whole.
struct Graph {
  int device;
  std::vector<std::function<void(Stream&)>> work;
};

struct World {
  std::mutex lock;
  Config config;
  bool initialised = false;
  double now = 0;  // virtual seconds everybody has waited for
  CUresult sticky = kSuccess;
  std::map<int, int> contexts;  // retained, by device
  std::set<std::pair<int, int>> peers;
  std::map<std::uint64_t, Range> ranges;
  std::map<int, std::size_t> used;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Graph*> graphs;
  std::set<int*> modules;
  std::map<std::string, int> calls;
  std::mt19937 random{1};
};

World& world();
void configure();

// Whether this call is the one planted to fail.
bool fails(const char* call);
// The current context's device; -2: none.
int current();
std::vector<int>& current_stack();
CUcontext context_of(int device);
int device_of(CUcontext context);

// Whose memory holds [at, at + bytes): a device, -1 registered host memory, -2 nobody's.
int holder(std::uint64_t at, std::size_t bytes);
bool reaches(int device, int of);

// Virtual seconds of a copy from one holder to another by a device.
double copy_seconds(int by, int from, int to, std::size_t bytes);
void pass(Stream& stream, double seconds);
void move(Stream& stream, std::uint64_t to, std::uint64_t from, std::size_t bytes);

// Puts work on a stream of the current context.
CUresult submit(CUstream stream, std::function<void(Stream&)> work);

}  // namespace fake

#define FAKE(name) \
  if (fake::fails(#name)) return fake::kUnknown
