#include "storage/ring.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "host/failure.hpp"

namespace lanewise::storage {

namespace {

constexpr unsigned kMostSubmissions = 4096;
constexpr unsigned kMostCompletions = 65536;
constexpr unsigned kMostRefusals = 1000;  // in a row, a millisecond each

// The kernel gives memory of a ring that was closed back a little later; until then it counts against the limit on
// locked memory (ulimit -l), and a new ring may find no room.
template <typename Call>
long patiently(Call&& call) {
  long result = call();
  for (int tries = 0; result < 0 && errno == ENOMEM && tries < 20; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    result = call();
  }
  return result;
}

int set_up(unsigned entries, abi::Params& params) {
  return static_cast<int>(patiently([&] { return syscall(abi::kSetup, entries, &params); }));
}

host::Failure no_ring(int error) {
  if (error == ENOMEM) {
    return host::system_failure("io_uring_setup", error,
                                "allow more locked memory (ulimit -l), use fewer --threads, or --engine psync");
  }
  return host::system_failure("io_uring_setup", error, "read with --engine psync, or allow io_uring on this machine");
}

}  // namespace

long Ring::enter_kernel(int ring, unsigned submitted, unsigned wait, unsigned flags) {
  return syscall(abi::kEnter, ring, submitted, wait, flags, nullptr, 0);
}

Ring::Ring(unsigned in_flight, Enter enter) : enter_(enter) {
  abi::Params params{};
  const unsigned entries = std::min(std::bit_ceil(std::max(in_flight, 1U)), kMostSubmissions);
  params.cq_entries = std::bit_ceil(std::clamp(in_flight, 2 * entries, kMostCompletions));
  // Completions are worked on when this thread asks for them, not in the middle of something else (Linux 6.1).
  params.flags = abi::kCqSize | abi::kSingleIssuer | abi::kDeferTaskrun;
  ring_ = set_up(entries, params);
  if (ring_ < 0 && errno == EINVAL) {
    const std::uint32_t completions = params.cq_entries;
    params = {};
    params.cq_entries = completions;
    params.flags = abi::kCqSize;
    ring_ = set_up(entries, params);
  }
  if (ring_ < 0) throw no_ring(errno);
  try {
    map(params);
  } catch (...) {
    close(ring_);
    throw;
  }
}

void Ring::map(const abi::Params& params) {
  if ((params.features & abi::kSingleMmap) == 0 || (params.features & abi::kNoDrop) == 0) throw no_ring(ENOSYS);
  rings_size_ = std::max(params.sq.array + params.sq_entries * sizeof(std::uint32_t),
                         params.cq.completions + params.cq_entries * sizeof(abi::Completion));
  submissions_size_ = params.sq_entries * sizeof(abi::Submission);
  const auto mapped = [this](std::size_t bytes, std::uint64_t offset) {
    void* at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_, static_cast<off_t>(offset));
    if (at == MAP_FAILED) throw no_ring(errno);
    return at;
  };
  rings_ = mapped(rings_size_, abi::kOffRings);
  try {
    submissions_ = static_cast<abi::Submission*>(mapped(submissions_size_, abi::kOffSubmissions));
  } catch (...) {
    munmap(rings_, rings_size_);
    throw;
  }
  auto* base = static_cast<std::byte*>(rings_);
  const auto word = [base](std::uint32_t offset) { return reinterpret_cast<std::uint32_t*>(base + offset); };
  sq_head_ = word(params.sq.head);
  sq_tail_ = word(params.sq.tail);
  sq_flags_ = word(params.sq.flags);
  sq_array_ = word(params.sq.array);
  sq_mask_ = *word(params.sq.mask);
  sq_entries_ = params.sq_entries;
  cq_head_ = word(params.cq.head);
  cq_tail_ = word(params.cq.tail);
  cq_mask_ = *word(params.cq.mask);
  completions_ = reinterpret_cast<abi::Completion*>(base + params.cq.completions);
  for (std::uint32_t i = 0; i < sq_entries_; ++i) sq_array_[i] = i;
}

Ring::~Ring() {
  munmap(submissions_, submissions_size_);
  munmap(rings_, rings_size_);
  close(ring_);
}

bool Ring::pin_buffers(const std::vector<iovec>& buffers) {
  return patiently([&] {
           return syscall(abi::kRegister, ring_, abi::kRegisterBuffers, buffers.data(), buffers.size());
         }) == 0;
}

bool Ring::pin_files(const std::vector<int>& files) {
  return syscall(abi::kRegister, ring_, abi::kRegisterFiles, files.data(), files.size()) == 0;
}

abi::Submission& Ring::next() {
  const auto full = [this] { return *sq_tail_ - __atomic_load_n(sq_head_, __ATOMIC_ACQUIRE) == sq_entries_; };
  while (full()) submit(0);
  const std::uint32_t tail = *sq_tail_;
  abi::Submission& request = submissions_[tail & sq_mask_];
  std::memset(&request, 0, sizeof request);
  // Only this thread enters the kernel, so it sees the new tail no earlier than in submit().
  __atomic_store_n(sq_tail_, tail + 1, __ATOMIC_RELEASE);
  ++queued_;
  return request;
}

void Ring::submit(unsigned wait) {
  while (queued_ > 0 || wait > 0 || overflown()) {
    const std::uint32_t available = __atomic_load_n(cq_tail_, __ATOMIC_ACQUIRE) - *cq_head_;
    if (queued_ == 0 && available >= wait && !overflown()) return;
    const unsigned flags = wait > 0 || overflown() ? abi::kGetEvents : 0;
    const long taken = enter_(ring_, queued_, wait, flags);
    if (taken > 0 || (taken == 0 && queued_ == 0)) {
      refusals_ = 0;
      queued_ -= static_cast<std::uint32_t>(taken);
      if (queued_ == 0) return;
    } else if (taken == 0 || errno == EBUSY || errno == EAGAIN) {
      refused(taken == 0 ? EAGAIN : errno);
      return;  // what is queued goes with the next call, after some completions
    } else if (errno != EINTR) {
      throw host::system_failure("io_uring_enter", errno, "try --engine psync");
    }
  }
}

// The kernel is short of room: leave it some time, but not for ever.
void Ring::refused(int error) {
  if (++refusals_ > kMostRefusals) {
    throw host::system_failure("io_uring_enter takes no request", error,
                               "free memory, use fewer --threads or a smaller --depth, or --engine psync");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::string io_uring_missing() {
  try {
    const Ring ring(1);
  } catch (const host::Failure& failure) {
    return failure.what();
  }
  return {};
}

}  // namespace lanewise::storage
