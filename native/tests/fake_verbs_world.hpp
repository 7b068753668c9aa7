// What fake_verbs.cpp and fake_verbs_api.cpp share: the objects behind the pointers that the library hands out.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

#include "fake_verbs.hpp"

// Header macros in the place of functions.
#undef ibv_reg_mr
#undef ibv_query_port
#undef ibv_get_device_list

namespace fake_verbs {

enum class Armed { kNo, kSolicited, kAny };

struct Context : ibv_context {
  int domains = 0;
};
struct Domain : ibv_pd {
  int children = 0;
};
struct Region : ibv_mr {
  int access = 0;
  std::byte* mapping = nullptr;  // of a dma-buf: where this process has what is at `addr`
  bool holds(std::uint64_t at, std::size_t bytes) const {
    const auto first = reinterpret_cast<std::uintptr_t>(addr);
    return at >= first && at + bytes <= first + length;
  }
  void* memory(std::uint64_t at) const {
    return mapping == nullptr ? reinterpret_cast<void*>(at) : mapping + (at - reinterpret_cast<std::uintptr_t>(addr));
  }
};
struct Events : ibv_comp_channel {
  std::deque<ibv_cq*> raised;
};
struct Pair;
struct Completion {
  ibv_wc wc;
  Pair* pair;
  std::size_t frees;  // work requests of its send queue
};
struct Queue : ibv_cq {
  std::deque<Completion> done;
  Armed armed = Armed::kNo;
  unsigned taken = 0, acknowledged = 0;  // events
  int users = 0;
};
struct Pair : ibv_qp {
  std::uint32_t peer = 0;
  ibv_qp_cap limits{};
  std::size_t queued = 0;      // work requests whose completion was not read yet
  std::size_t unsignaled = 0;  // of them, since the last signalled one
  std::size_t receives = 0;
  std::deque<std::uint32_t> waiting;  // immediates without a receive
};

struct World {
  std::mutex mutex;  // what follows, and all of the objects
  Limits limits;
  Counts total;
  std::map<std::uint32_t, Region*> regions;
  std::map<std::uint32_t, Pair*> pairs;
  std::uint32_t next_number = 100;
  std::optional<ibv_wc_status> failing;
  bool holding = false;
  std::deque<Completion> held;
  ibv_device devices[2]{};
};
World& world();

inline void must(bool is, const char* what) {
  if (is) return;
  std::fprintf(stderr, "fake_verbs: %s\n", what);
  std::abort();
}

// The queue pair fails: what it waits for is flushed.
void enter_error(Pair& pair);

int post_send(ibv_qp* which, ibv_send_wr* request, ibv_send_wr** refused);
int post_recv(ibv_qp* which, ibv_recv_wr* request, ibv_recv_wr** refused);
int poll_cq(ibv_cq* which, int most, ibv_wc* out);
int req_notify_cq(ibv_cq* which, int solicited_only);

}  // namespace fake_verbs
