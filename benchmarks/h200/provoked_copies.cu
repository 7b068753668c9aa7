// Copies and kernels of provoked_third.py and provoked_fourth.py, each as a short program of an engineer would do them.
// nvcc -O2 -std=c++17.
//
//     copies NAME      one line or a few with a size and a rate; what is done stands in the function of that name alone
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

namespace {

constexpr size_t kMega = 1000 * 1000, kPiece = 64 * 1000, kThreads = 256;

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

double seconds(const std::function<void()>& work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  CHECK(cudaDeviceSynchronize());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

void report(const std::string& what, size_t bytes, double time) {
  std::printf("%s %zu MB: %.3f ms, %.2f GB/s\n", what.c_str(), bytes / kMega, time * 1e3, bytes / time * 1e-9);
}

double mean(int times, const std::function<void()>& work) {
  seconds(work);  // warm
  double sum = 0;
  for (int each = 0; each < times; ++each) sum += seconds(work);
  return sum / times;
}

void repeat(const std::string& what, size_t bytes, int times, const std::function<void()>& work) {
  report(what, bytes, mean(times, work));
}

char* on_device(size_t bytes) {
  char* memory = nullptr;
  CHECK(cudaMalloc(&memory, bytes));
  CHECK(cudaMemset(memory, 1, bytes));
  CHECK(cudaDeviceSynchronize());
  return memory;
}

char* on_host(size_t bytes, unsigned flags = cudaHostAllocDefault) {
  char* memory = nullptr;
  CHECK(cudaHostAlloc(&memory, bytes, flags));
  std::memset(memory, 1, bytes);
  return memory;
}

int all_blocks() {
  int count = 0, device = 0;
  CHECK(cudaGetDevice(&device));
  CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return 8 * count;
}

__global__ void sum_up(const uint4* data, size_t count, unsigned* result) {
  unsigned sum = 0;
  const size_t step = size_t(gridDim.x) * blockDim.x;
  for (size_t at = size_t(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += step) {
    const uint4 value = data[at];
    sum += value.x ^ value.y ^ value.z ^ value.w;
  }
  if (sum == 0x12345678U) *result = sum;  // so that no read is left out
}

// A kernel of so many blocks that reads all of `memory`.
std::function<void()> reading(const char* memory, size_t bytes, int blocks) {
  auto* result = reinterpret_cast<unsigned*>(on_device(sizeof(unsigned)));
  return [=] {
    sum_up<<<blocks, kThreads>>>(reinterpret_cast<const uint4*>(memory), bytes / sizeof(uint4), result);
    CHECK(cudaGetLastError());
  };
}

void rows() {
  const size_t width = 32, pitch = 512, count = 1 << 20;
  char *host = on_host(pitch * count), *device = on_device(width * count);
  repeat("table block to GPU0", width * count, 3,
         [=] { CHECK(cudaMemcpy2D(device, width, host, pitch, width, count, cudaMemcpyHostToDevice)); });
}

void pieces() {
  const size_t bytes = 4000 * kPiece;
  char *host = on_host(bytes), *device = on_device(bytes);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  repeat("H2D", bytes, 3, [=] {
    for (size_t at = 0; at < bytes; at += kPiece) {
      CHECK(cudaMemcpyAsync(device + at, host + at, kPiece, cudaMemcpyHostToDevice, stream));
      CHECK(cudaStreamSynchronize(stream));
    }
  });
}

void buffers() {
  const size_t bytes = 256 * kMega;
  char* device = on_device(bytes);
  repeat("H2D", bytes, 3, [=] {
    char* host = nullptr;
    CHECK(cudaMallocHost(&host, bytes));
    CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaFreeHost(host));
  });
}

void uploads() {
  const size_t bytes = 512 * kMega, part = 4 * kMega;
  char *host = on_host(part), *device = on_device(bytes), *data = static_cast<char*>(std::malloc(bytes));
  std::memset(data, 1, bytes);
  repeat("upload to GPU0", bytes, 3, [=] {
    for (size_t at = 0; at < bytes; at += part) {
      std::memcpy(host, data + at, part);
      CHECK(cudaMemcpyAsync(device + at, host, part, cudaMemcpyHostToDevice));
      CHECK(cudaStreamSynchronize(nullptr));
    }
  });
}

void combined() {
  const size_t bytes = 256 * kMega;
  char *device = on_device(bytes), *plain = on_host(bytes), *other = on_host(bytes, cudaHostAllocWriteCombined);
  repeat("H2D pinned", bytes, 5, [=] { CHECK(cudaMemcpy(device, plain, bytes, cudaMemcpyHostToDevice)); });
  repeat("H2D pinned write-combined", bytes, 5,
         [=] { CHECK(cudaMemcpy(device, other, bytes, cudaMemcpyHostToDevice)); });
}

void mapped() {
  const size_t bytes = 256 * kMega;
  repeat("kernel reads host memory", bytes, 5, reading(on_host(bytes), bytes, all_blocks()));
}

void mapped_by_few() {
  const size_t bytes = 256 * kMega;
  repeat("kernel reads host memory", bytes, 3, reading(on_host(bytes), bytes, 1));
}

void mapped_time() {
  const size_t bytes = 256 << 20;
  const double time = mean(5, reading(on_host(bytes), bytes, all_blocks()));
  std::printf("read %zu bytes of host memory in %.2f ms\n", bytes, time * 1e3);
}

void managed() {
  const size_t bytes = 512 * kMega;
  char* memory = nullptr;
  CHECK(cudaMallocManaged(&memory, bytes));
  const auto read = reading(memory, bytes, all_blocks());
  for (int pass = 1; pass <= 3; ++pass) {
    std::memset(memory, pass, bytes);
    report("pass " + std::to_string(pass) + ": kernel reads", bytes, seconds(read));
  }
}

void resident() {
  const size_t bytes = 512 * kMega;
  char* memory = nullptr;
  CHECK(cudaMallocManaged(&memory, bytes));
  CHECK(cudaMemset(memory, 1, bytes));
  CHECK(cudaDeviceSynchronize());
  const auto read = reading(memory, bytes, all_blocks());
  seconds(read);
  for (int pass = 1; pass <= 3; ++pass) report("pass " + std::to_string(pass) + ": kernel reads", bytes, seconds(read));
}

void peers() {
  const size_t bytes = 256 * kMega;
  char* from = on_device(bytes);
  CHECK(cudaSetDevice(1));
  char* to = on_device(bytes);
  repeat("GPU0 -> GPU1", bytes, 10, [=] { CHECK(cudaMemcpyPeer(to, 1, from, 0, bytes)); });
}

void peer_kernel(int blocks) {
  const size_t bytes = 256 * kMega;
  char* memory = on_device(bytes);
  CHECK(cudaSetDevice(1));
  CHECK(cudaDeviceEnablePeerAccess(0, 0));
  repeat("kernel on GPU1 reads GPU0's memory,", bytes, 5, reading(memory, bytes, blocks ? blocks : all_blocks()));
}

void peer_time() {
  const size_t bytes = 256 * kMega;
  char* memory = on_device(bytes);
  CHECK(cudaSetDevice(1));
  CHECK(cudaDeviceEnablePeerAccess(0, 0));
  const double time = mean(5, reading(memory, bytes, 2));
  std::printf("peer read: %.3e B in %.3e s = %.3e B/s\n", double(bytes), time, bytes / time);
}

}  // namespace

int main(int count, char** arguments) {
  const std::map<std::string, std::function<void()>> programs = {
      {"rows", rows},
      {"pieces", pieces},
      {"buffers", buffers},
      {"uploads", uploads},
      {"combined", combined},
      {"mapped", mapped},
      {"few", mapped_by_few},
      {"managed", managed},
      {"resident", resident},
      {"peers", peers},
      {"peer-kernel", [] { peer_kernel(0); }},
      {"read-time", mapped_time},
      {"peer-time", peer_time},
      {"peer-few", [] { peer_kernel(4); }},
  };
  const auto found = count == 2 ? programs.find(arguments[1]) : programs.end();
  if (found == programs.end()) {
    for (const auto& [name, run] : programs) std::fprintf(stderr, "%s\n", name.c_str());
    return 2;
  }
  found->second();
  return 0;
}
