// Copies of many pieces between pinned host memory and GPU 0, scattered in both, by cuMemcpyBatchAsync in several
// manners, one after the other on the same memory. A line of stdin is a manner: streams, threads (each posts to its
// share of the streams), copies a call, flags and access order of the attributes. A line of stdout repeats it, then
// the seconds until the last post had returned (median) and the seconds of each round. Every piece is compared.
//
//     g++ -O2 -std=c++20 -pthread -I/usr/local/cuda/include batches.cpp -lcuda -o batches
//     echo 2 1 256 0 1 | ./batches h2d 8192 131072

#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "error: %s: %s\n", call, name != nullptr ? name : "unknown");
  std::exit(1);
}
#define MUST(call) must(call, #call)

struct Manner {
  std::size_t streams = 1, threads = 1, copies = 0;
  unsigned flags = 0, order = 1;
};

struct Pieces {
  std::vector<CUdeviceptr> to, from;
  std::vector<std::size_t> sizes;
};

void post(Pieces& pieces, std::size_t first, std::size_t count, const Manner& manner, CUstream stream) {
  CUmemcpyAttributes attributes = {};
  attributes.srcAccessOrder = static_cast<CUmemcpySrcAccessOrder>(manner.order);
  attributes.flags = manner.flags;
  std::size_t of = 0;
#if CUDA_VERSION >= 13000
  MUST(cuMemcpyBatchAsync(&pieces.to[first], &pieces.from[first], &pieces.sizes[first], count, &attributes, &of, 1,
                          stream));
#else
  std::size_t failed = 0;
  MUST(cuMemcpyBatchAsync(&pieces.to[first], &pieces.from[first], &pieces.sizes[first], count, &attributes, &of, 1,
                          &failed, stream));
#endif
}

// Seconds of posting and of everything.
std::pair<double, double> round_of(Pieces& pieces, const Manner& manner, const std::vector<CUstream>& streams,
                                   CUcontext context) {
  const std::size_t count = pieces.to.size();
  // Without a size of calls a stream gets its share in one call.
  const std::size_t copies = manner.copies > 0 ? manner.copies : (count + manner.streams - 1) / manner.streams;
  const std::size_t calls = (count + copies - 1) / copies;
  std::latch ready(static_cast<std::ptrdiff_t>(manner.threads));
  std::vector<double> posted(manner.threads);
  Clock::time_point begun;
  const auto work = [&](std::size_t thread) {
    MUST(cuCtxSetCurrent(context));
    ready.arrive_and_wait();
    if (thread == 0) begun = Clock::now();
    const auto own = thread == 0 ? begun : Clock::now();
    for (std::size_t call = thread; call < calls; call += manner.threads) {
      const std::size_t first = call * copies;
      post(pieces, first, std::min(copies, count - first), manner, streams[call % manner.streams]);
    }
    posted[thread] = std::chrono::duration<double>(Clock::now() - own).count();
    for (std::size_t s = thread; s < manner.streams; s += manner.threads) MUST(cuStreamSynchronize(streams[s]));
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 1; t < manner.threads; ++t) threads.emplace_back(work, t);
    work(0);
  }
  return {*std::max_element(posted.begin(), posted.end()), std::chrono::duration<double>(Clock::now() - begun).count()};
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) return std::fprintf(stderr, "usage: batches h2d|d2h PIECES BYTES < manners\n"), 2;
  const std::string direction = words[1];
  const std::size_t number = std::stoul(words[2]), bytes = std::stoul(words[3]), total = number * bytes;
  const bool to_gpu = direction == "h2d";
  CUdevice device;
  CUcontext context;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  std::vector<CUstream> streams(8);
  for (CUstream& stream : streams) MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  void *host = nullptr, *back = nullptr;
  CUdeviceptr gpu = 0;
  MUST(cuMemHostAlloc(&host, total, CU_MEMHOSTALLOC_PORTABLE));
  MUST(cuMemHostAlloc(&back, total, CU_MEMHOSTALLOC_PORTABLE));
  MUST(cuMemAlloc(&gpu, total));
  Pieces pieces;
  pieces.sizes.assign(number, bytes);
  std::vector<std::size_t> from(number), to(number);
  std::iota(from.begin(), from.end(), 0);
  std::mt19937 random(1);
  to = from;
  std::shuffle(from.begin(), from.end(), random);
  std::shuffle(to.begin(), to.end(), random);
  // d2h goes from the GPU to `back`, so that what arrived lies in `back` in both cases.
  for (std::size_t i = 0; i < number; ++i) {
    pieces.from.push_back(from[i] * bytes + (to_gpu ? reinterpret_cast<CUdeviceptr>(host) : gpu));
    pieces.to.push_back(to[i] * bytes + (to_gpu ? gpu : reinterpret_cast<CUdeviceptr>(back)));
  }
  auto* source = static_cast<std::uint64_t*>(host);
  for (std::size_t i = 0; i < total / 8; ++i) source[i] = i * 0x9E3779B97F4A7C15ULL;
  if (!to_gpu) MUST(cuMemcpyHtoD(gpu, host, total));
  Manner manner;
  while (std::scanf("%zu %zu %zu %u %u", &manner.streams, &manner.threads, &manner.copies, &manner.flags,
                    &manner.order) == 5) {
    std::memset(back, 0, total);
    if (to_gpu) MUST(cuMemsetD8(gpu, 0, total));
    std::vector<double> posts, all;
    for (int round = 0; round < 8; ++round) {
      const auto [posting, seconds] = round_of(pieces, manner, streams, context);
      if (round == 0) continue;  // the first one warms up
      posts.push_back(posting);
      all.push_back(seconds);
    }
    if (to_gpu) MUST(cuMemcpyDtoH(back, gpu, total));
    for (std::size_t i = 0; i < number; ++i) {
      if (std::memcmp(static_cast<char*>(back) + to[i] * bytes, static_cast<char*>(host) + from[i] * bytes, bytes) == 0)
        continue;
      return std::fprintf(stderr, "error: piece %zu arrived wrong\n", i), 1;
    }
    std::nth_element(posts.begin(), posts.begin() + 3, posts.end());
    std::printf("%s %zu %zu %zu %zu %zu %u %u %.9f", direction.c_str(), number, bytes, manner.streams, manner.threads,
                manner.copies, manner.flags, manner.order, posts[3]);
    for (const double seconds : all) std::printf(" %.9f", seconds);
    std::printf("\n");
    std::fflush(stdout);
  }
}
