// Both sides of a connection in one process, over every transport.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <vector>

#include "dispatch/shm_channel.hpp"
#include "dispatch/tcp_channel.hpp"
#include "dispatch/verbs_channel.hpp"
#include "loadtest/sample_library.hpp"

namespace lanewise::dispatch {

inline constexpr std::int64_t kSoon = 50'000'000;  // ns
inline constexpr std::uint32_t kSlots = 32;
inline constexpr std::size_t kSampleBytes = 5000, kAnswerBytes = 8;

inline std::size_t stride() { return loadtest::SampleLibrary::stride_of(kSampleBytes); }

// One connection: the Frontend's side, and the node's.
struct Pair {
  std::unique_ptr<Channel> frontend, node;
};

inline Pair shm_pair(const SharedMemoryPointer& slots) {
  const ShmLayout layout{kSlots, kSampleBytes, kAnswerBytes};
  const auto memory = std::make_shared<SharedMemory>(layout.total(), host::kAnyNode);
  // One mapping for both: ThreadSanitizer knows memory by its address.
  return {std::make_unique<ShmChannel>(ShmChannel::Side::kFrontend, layout, memory, slots, 0, stride()),
          std::make_unique<ShmChannel>(ShmChannel::Side::kNode, layout, memory, slots, 0, stride())};
}

inline Slots answers_in(std::vector<std::byte>* memory) {
  return {.data = memory == nullptr ? nullptr : memory->data(),
          .count = kSlots,
          .bytes = kAnswerBytes,
          .stride = kAnswerBytes,
          .has_text = true};
}

inline Pair tcp_pair(const SharedMemoryPointer& slots) {
  std::array<int, 2> sockets{};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()), 0);
  const Slots samples{.data = slots->data(), .count = kSlots, .bytes = kSampleBytes, .stride = stride()};
  const auto answers = std::make_shared<std::vector<std::byte>>(kSlots * kAnswerBytes + kTextBytes);
  return {std::make_unique<TcpChannel>(sockets[0], answers_in(answers.get()), samples, answers, false),
          std::make_unique<TcpChannel>(sockets[1], samples, answers_in(nullptr), slots, false)};
}

inline SharedMemoryPointer sample_memory() { return std::make_shared<SharedMemory>(kSlots * stride(), host::kAnyNode); }

#ifdef LANEWISE_VERBS
struct VerbsPair {
  std::unique_ptr<VerbsChannel> frontend, node;
};

// Over a device of fake_verbs.hpp.
inline VerbsPair unconnected_verbs_pair(const SharedMemoryPointer& slots, const char* device = "fake0") {
  const Slots samples{.data = slots->data(), .count = kSlots, .bytes = kSampleBytes, .stride = stride()};
  const auto answers = std::make_shared<std::vector<std::byte>>(kSlots * kAnswerBytes + kTextBytes);
  const network::VerbsPort port{.device = device};
  return {make_verbs_channel({.port = port, .mine = answers_in(answers.get()), .peers = samples, .keeper = answers}),
          make_verbs_channel({.port = port, .mine = samples, .peers = answers_in(nullptr), .keeper = slots})};
}

inline VerbsPair connected_verbs_pair(const SharedMemoryPointer& slots, const char* device = "fake0") {
  VerbsPair pair = unconnected_verbs_pair(slots, device);
  pair.frontend->connect(pair.node->address());
  pair.node->connect(pair.frontend->address());
  return pair;
}

inline Pair verbs_pair(const SharedMemoryPointer& slots) {
  VerbsPair pair = connected_verbs_pair(slots);
  return {std::move(pair.frontend), std::move(pair.node)};
}
#endif

}  // namespace lanewise::dispatch
