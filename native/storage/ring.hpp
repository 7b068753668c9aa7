// One io_uring: reads and writes queued by one thread, into buffers and files that the kernel has pinned beforehand.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/abi.hpp"

namespace lanewise::storage {

class Ring {
 public:
  // io_uring_enter(2): requests handed over, or -1 and errno. A test may refuse as a kernel short of memory does.
  using Enter = long (*)(int ring, unsigned submitted, unsigned wait, unsigned flags);

  // Room for that many requests in flight. It belongs to the thread that makes it.
  explicit Ring(unsigned in_flight, Enter enter = enter_kernel);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Pins buffers or files; false where the kernel does not allow it (a limit on locked memory, say).
  bool pin_buffers(const std::vector<iovec>& buffers);
  bool pin_files(const std::vector<int>& files);

  // A cleared request to fill in. It is handed over by the next submit(); where the queue is full, that happens here.
  abi::Submission& next();
  // Hands over what is queued and waits until at least `wait` completions are there; returns early where completions
  // must be reaped first. host::Failure where the kernel takes nothing for a second or more.
  void submit(unsigned wait);

  // Calls handle(completion) for each one that is there.
  template <typename Handler>
  void reap(Handler&& handle) {
    std::uint32_t head = *cq_head_;
    while (head != __atomic_load_n(cq_tail_, __ATOMIC_ACQUIRE)) {
      const abi::Completion completion = completions_[head & cq_mask_];
      __atomic_store_n(cq_head_, ++head, __ATOMIC_RELEASE);
      handle(completion);
    }
  }

 private:
  static long enter_kernel(int ring, unsigned submitted, unsigned wait, unsigned flags);
  void map(const abi::Params& params);
  void refused(int error);
  bool overflown() const { return (__atomic_load_n(sq_flags_, __ATOMIC_RELAXED) & abi::kCqOverflow) != 0; }

  const Enter enter_;
  unsigned refusals_ = 0;  // in a row
  int ring_ = -1;
  void* rings_ = nullptr;
  std::size_t rings_size_ = 0;
  abi::Submission* submissions_ = nullptr;
  std::size_t submissions_size_ = 0;
  std::uint32_t *sq_head_ = nullptr, *sq_tail_ = nullptr, *sq_flags_ = nullptr, *sq_array_ = nullptr;
  std::uint32_t *cq_head_ = nullptr, *cq_tail_ = nullptr;
  abi::Completion* completions_ = nullptr;
  std::uint32_t sq_mask_ = 0, sq_entries_ = 0, cq_mask_ = 0;
  std::uint32_t queued_ = 0;
};

// Why this kernel or container offers no io_uring; empty where it does.
std::string io_uring_missing();

}  // namespace lanewise::storage
