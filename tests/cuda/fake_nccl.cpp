// An NCCL without GPUs, over the CUDA driver without GPUs (LANEWISE_CUDA_DRIVER): what each call would do to memory is
// done when its group ends, and each rank's stream then copies a message within its GPU, so that virtual time passes.
//
// Strict, so that misuse shows: a group in which a rank has no part, or another count, is ncclInvalidUsage.
// Environment: FAKE_NCCL_CORRUPT=rank (the middle value that it receives is wrong), FAKE_NCCL_FAIL=name of a call,
// FAKE_NCCL_FAIL_AT=which of them (all).
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr int kSuccess = 0, kInternal = 3, kInvalidUsage = 5;

struct Comm {
  int rank, ranks, device;
  void* context;
};

struct Part {
  std::string name;
  const float* send;
  float* receive;
  std::size_t count;
  int peer;
  Comm* comm;
  void* stream;
};

std::vector<Part> group;
std::string last;
int live = 0, calls = 0;  // `calls` of the one that fails, since the communicators were made

template <class Function>
Function driver(const char* name) {
  static void* library = dlopen(std::getenv("LANEWISE_CUDA_DRIVER"), RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(library, name));
}

int said(int code, std::string words) {
  last = std::move(words);
  return code;
}

int planned(const char* name) {
  const char* failing = std::getenv("FAKE_NCCL_FAIL");
  if (failing == nullptr || name != std::string(failing)) return kSuccess;
  const char* at = std::getenv("FAKE_NCCL_FAIL_AT");
  return at == nullptr || ++calls == std::atoi(at) ? said(kInternal, "planted") : kSuccess;
}

struct Current {
  explicit Current(const Comm& comm) { driver<int (*)(void*)>("cuCtxPushCurrent_v2")(comm.context); }
  ~Current() {
    void* context = nullptr;
    driver<int (*)(void**)>("cuCtxPopCurrent_v2")(&context);
  }
};

int add(const char* name, const void* send, void* receive, std::size_t count, int type, int peer, void* comm,
        void* stream) {
  if (const int code = planned(name)) return code;
  if (type != 7) return said(kInvalidUsage, "floats only");
  group.push_back({name, static_cast<const float*>(send), static_cast<float*>(receive), count, peer,
                   static_cast<Comm*>(comm), stream});
  return kSuccess;
}

std::vector<float> sum(const std::vector<Part>& parts, std::size_t count) {
  std::vector<float> total(count);
  for (const Part& part : parts) {
    for (std::size_t i = 0; i < count; ++i) total[i] += part.send[i];
  }
  return total;
}

// One operation of all ranks, parts in the order of the ranks.
void together(const std::vector<Part>& parts) {
  const std::string& name = parts[0].name;
  const std::size_t count = parts[0].count;
  if (name == "ncclAllReduce" || name == "ncclReduceScatter") {
    const bool scatter = name == "ncclReduceScatter";
    const std::vector<float> total = sum(parts, scatter ? count * parts.size() : count);
    for (std::size_t r = 0; r < parts.size(); ++r) {
      std::memcpy(parts[r].receive, total.data() + (scatter ? r * count : 0), count * sizeof(float));
    }
    return;
  }
  std::vector<std::vector<float>> sent;
  for (const Part& part : parts) sent.emplace_back(part.send, part.send + count);
  for (const Part& part : parts) {
    if (name == "ncclBroadcast") std::memcpy(part.receive, sent[part.peer].data(), count * sizeof(float));
    for (std::size_t r = 0; name == "ncclAllGather" && r < sent.size(); ++r) {
      std::memcpy(part.receive + r * count, sent[r].data(), count * sizeof(float));
    }
  }
}

int exchange(const std::vector<Part>& parts) {
  std::map<std::pair<int, int>, std::deque<Part>> sends;
  for (const Part& part : parts) {
    if (part.name == "ncclSend") sends[{part.comm->rank, part.peer}].push_back(part);
  }
  for (const Part& part : parts) {
    if (part.name != "ncclRecv") continue;
    auto& waiting = sends[{part.peer, part.comm->rank}];
    if (waiting.empty() || waiting.front().count != part.count) return said(kInvalidUsage, "nobody sends this");
    std::memcpy(part.receive, waiting.front().send, part.count * sizeof(float));
    waiting.pop_front();
  }
  return kSuccess;
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(int code) { return code == kInvalidUsage ? "invalid usage" : "internal error"; }
const char* ncclGetLastError(void*) { return last.c_str(); }
int fake_nccl_live() { return live; }

int ncclGetVersion(int* version) {
  *version = 22707;
  return kSuccess;
}

int ncclCommInitAll(void** comms, int count, const int* devices) {
  calls = 0;
  if (const int code = planned("ncclCommInitAll")) return code;
  for (int rank = 0; rank < count; ++rank) {
    auto* comm = new Comm{rank, count, devices == nullptr ? rank : devices[rank], nullptr};
    driver<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&comm->context, comm->device);
    comms[rank] = comm;
    ++live;
  }
  return kSuccess;
}

int ncclCommDestroy(void* handle) {
  auto* comm = static_cast<Comm*>(handle);
  driver<int (*)(int)>("cuDevicePrimaryCtxRelease_v2")(comm->device);
  delete comm;
  --live;
  return kSuccess;
}

int ncclGroupStart() {
  group.clear();
  return kSuccess;
}

int ncclAllReduce(const void* send, void* receive, std::size_t count, int type, int, void* comm, void* stream) {
  return add("ncclAllReduce", send, receive, count, type, 0, comm, stream);
}
int ncclReduceScatter(const void* send, void* receive, std::size_t count, int type, int, void* comm, void* stream) {
  return add("ncclReduceScatter", send, receive, count, type, 0, comm, stream);
}
int ncclAllGather(const void* send, void* receive, std::size_t count, int type, void* comm, void* stream) {
  return add("ncclAllGather", send, receive, count, type, 0, comm, stream);
}
int ncclBroadcast(const void* send, void* receive, std::size_t count, int type, int root, void* comm, void* stream) {
  return add("ncclBroadcast", send, receive, count, type, root, comm, stream);
}
int ncclSend(const void* send, std::size_t count, int type, int peer, void* comm, void* stream) {
  return add("ncclSend", send, nullptr, count, type, peer, comm, stream);
}
int ncclRecv(void* receive, std::size_t count, int type, int peer, void* comm, void* stream) {
  return add("ncclRecv", nullptr, receive, count, type, peer, comm, stream);
}

int ncclGroupEnd() {
  const std::vector<Part> parts = std::move(group);
  group.clear();
  if (parts.empty()) return kSuccess;
  for (const Part& part : parts) {
    const Current current(*part.comm);
    driver<int (*)(void*)>("cuStreamSynchronize")(part.stream);
  }
  if (parts[0].name == "ncclSend" || parts[0].name == "ncclRecv") {
    if (const int code = exchange(parts)) return code;
  } else {
    if (parts.size() != static_cast<std::size_t>(parts[0].comm->ranks)) return said(kInvalidUsage, "a rank is missing");
    for (const Part& part : parts) {
      if (part.count != parts[0].count) return said(kInvalidUsage, "counts differ");
    }
    together(parts);
  }
  const char* corrupt = std::getenv("FAKE_NCCL_CORRUPT");
  for (const Part& part : parts) {
    if (part.receive == nullptr) continue;
    if (corrupt != nullptr && part.comm->rank == std::atoi(corrupt)) part.receive[part.count / 2] += 1;
    const Current current(*part.comm);
    driver<int (*)(std::uint64_t, std::uint64_t, std::size_t, void*)>("cuMemcpyDtoDAsync_v2")(
        reinterpret_cast<std::uint64_t>(part.receive), reinterpret_cast<std::uint64_t>(part.receive),
        part.count * sizeof(float), part.stream);
  }
  return kSuccess;
}
}
