// Copies of many pieces between pinned host memory and GPU 0, scattered in both: one cuMemcpyAsync a piece, or one
// cuMemcpyBatchAsync for all. A line a measurement: software, direction, pieces, bytes of one, seconds of each round.
//
//     g++ -O2 -std=c++17 -I/usr/local/cuda/include blocks.cpp -lcuda -o blocks && ./blocks cuMemcpyBatchAsync d2h 8192 131072

#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

static void must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "error: %s: %s\n", call, name ? name : "unknown");
  std::exit(1);
}
#define MUST(call) must(call, #call)

int main(int count, char** words) {
  if (count != 5) return std::fprintf(stderr, "usage: blocks SOFTWARE h2d|d2h PIECES BYTES\n"), 2;
  const std::string software = words[1], direction = words[2];
  const size_t pieces = std::stoul(words[3]), bytes = std::stoul(words[4]);
  CUdevice device;
  CUcontext context;
  CUstream stream;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  void* host = nullptr;
  CUdeviceptr gpu = 0;
  MUST(cuMemHostAlloc(&host, pieces * bytes, CU_MEMHOSTALLOC_PORTABLE));
  MUST(cuMemAlloc(&gpu, pieces * bytes));
  std::fill_n(static_cast<char*>(host), pieces * bytes, 1);
  // A cache's blocks lie in any order on both sides.
  std::vector<size_t> place(pieces);
  std::iota(place.begin(), place.end(), 0);
  std::mt19937 random(1);
  std::vector<CUdeviceptr> to(pieces), from(pieces);
  std::vector<size_t> sizes(pieces, bytes);
  std::shuffle(place.begin(), place.end(), random);
  for (size_t i = 0; i < pieces; ++i) to[i] = place[i] * bytes + (direction == "h2d" ? gpu : (CUdeviceptr)host);
  std::shuffle(place.begin(), place.end(), random);
  for (size_t i = 0; i < pieces; ++i) from[i] = place[i] * bytes + (direction == "h2d" ? (CUdeviceptr)host : gpu);
  CUmemcpyAttributes attributes = {};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t first = 0;
  std::printf("%s %s %zu %zu", software.c_str(), direction.c_str(), pieces, bytes);
  for (int round = 0; round < 8; ++round) {
    const auto begun = std::chrono::steady_clock::now();
    if (software == "cuMemcpyAsync") {
      for (size_t i = 0; i < pieces; ++i) MUST(cuMemcpyAsync(to[i], from[i], bytes, stream));
    } else {
#if CUDA_VERSION >= 13000
      MUST(cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), pieces, &attributes, &first, 1, stream));
#else
      size_t failed = 0;
      MUST(cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), pieces, &attributes, &first, 1, &failed, stream));
#endif
    }
    MUST(cuStreamSynchronize(stream));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    if (round > 0) std::printf(" %.9f", took.count());  // the first one warms up
  }
  std::printf("\n");
}
