// The part of the kernel's io_uring interface that is used here, written from its documented layout: the layout never
// changes, while the headers of a machine may be older than its kernel. docs/decisions/0010-io-uring-by-hand.md
#pragma once

#include <cstdint>

namespace lanewise::storage::abi {

// The same on every architecture since Linux 5.1.
constexpr long kSetup = 425;
constexpr long kEnter = 426;
constexpr long kRegister = 427;

// Flags of setup, and what a kernel must be able to do: one mapping for both rings, and no completion ever lost (5.5).
constexpr std::uint32_t kCqSize = 1U << 3;
constexpr std::uint32_t kSingleIssuer = 1U << 12;
constexpr std::uint32_t kDeferTaskrun = 1U << 13;
constexpr std::uint32_t kSingleMmap = 1U << 0;
constexpr std::uint32_t kNoDrop = 1U << 1;

constexpr std::uint32_t kGetEvents = 1U << 0;   // of enter
constexpr std::uint32_t kCqOverflow = 1U << 1;  // of the submission ring's flags
constexpr std::uint8_t kFixedFile = 1U << 0;    // of one submission

constexpr unsigned kRegisterBuffers = 0;
constexpr unsigned kRegisterFiles = 2;

constexpr std::uint64_t kOffRings = 0;
constexpr std::uint64_t kOffSubmissions = 0x10000000;

enum Op : std::uint8_t { kReadFixed = 4, kWriteFixed = 5, kRead = 22, kWrite = 23 };

struct Submission {
  std::uint8_t opcode;
  std::uint8_t flags;
  std::uint16_t priority;
  std::int32_t file;
  std::uint64_t offset;
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint32_t rw_flags;
  std::uint64_t user;
  std::uint16_t buffer;
  std::uint16_t personality;
  std::int32_t splice;
  std::uint64_t rest[2];
};

struct Completion {
  std::uint64_t user;
  std::int32_t result;
  std::uint32_t flags;
};

struct SubmissionOffsets {
  std::uint32_t head, tail, mask, entries, flags, dropped, array, reserved;
  std::uint64_t user;
};

struct CompletionOffsets {
  std::uint32_t head, tail, mask, entries, overflow, completions, flags, reserved;
  std::uint64_t user;
};

struct Params {
  std::uint32_t sq_entries, cq_entries, flags, sq_cpu, sq_idle, features, workers, reserved[3];
  SubmissionOffsets sq;
  CompletionOffsets cq;
};

static_assert(sizeof(Submission) == 64 && sizeof(Completion) == 16 && sizeof(Params) == 120);

}  // namespace lanewise::storage::abi
