// libibverbs for tests: two devices, whose RC queue pairs reach each other within this process. It is strict where a
// NIC is: keys, their ranges and protection domains, the length of queues until their completions are read, what is
// freed before what.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace fake_verbs {

inline constexpr const char* kDevice = "fake0";
inline constexpr const char* kOtherDevice = "fake1";

// What the device allows to whoever opens it next.
struct Limits {
  int work_requests = 4096;
  int completions = 4096;
  std::uint32_t inline_bytes = 64;
};
void set_limits(const Limits& limits);

struct Counts {
  std::uint64_t posts = 0;          // calls of ibv_post_send
  std::uint64_t work_requests = 0;  // in them
  std::uint64_t inlined = 0;        // of them
  std::uint64_t completions = 0;    // of what was sent
  std::uint64_t events = 0;         // raised
  std::uint64_t waits = 0;          // for an event of any completion
  std::uint64_t contexts = 0;       // opened and not closed
};
Counts counts();
// Regions of memory that begin there, registered now.
std::size_t regions_at(const void* data);

// The next work request of anybody fails.
void fail_next(ibv_wc_status status);
// While `held` is true, sends do not complete.
void hold_completions(bool held);
// A write with immediate arrives at a queue pair, of a peer that does as it likes.
void arrive(std::uint32_t queue_pair, std::uint32_t immediate, ibv_wc_opcode opcode = IBV_WC_RECV_RDMA_WITH_IMM);

}  // namespace fake_verbs
