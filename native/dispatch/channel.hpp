// One side of a connection, as every transport has it: it puts messages into numbered slots of the peer's memory, and
// learns which of its own slots the peer has filled. Who posts manages the peer's slots: a slot is filled again only
// after its last message was dealt with, so a slow receiver is never overrun.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dispatch/message.hpp"

namespace lanewise::dispatch {

inline constexpr std::size_t kMessages = 256;           // taken from a channel at once
inline constexpr std::int64_t kPatience = 100'000'000;  // ns between two looks whether to end

// The slots of one side that its peer fills.
struct Slots {
  std::byte* data = nullptr;
  std::uint32_t count = 0;
  std::size_t bytes = 0;      // of data at most
  std::size_t stride = 0;     // from one slot to the next
  std::byte* text = nullptr;  // kTextBytes for replies, as slot number `count`; null where none come

  std::byte* at(std::uint32_t slot) const { return slot == count ? text : data + slot * stride; }
  bool holds(const Message& message) const {
    if (message.bytes == 0) return true;
    if (message.slot < count) return message.bytes <= bytes;
    return text != nullptr && message.slot == count && message.bytes <= kTextBytes;
  }
};

// What a side has sent and received; read while it goes on.
struct ChannelCounters {
  std::atomic<std::uint64_t> posted = 0;     // messages
  std::atomic<std::uint64_t> received = 0;   // messages
  std::atomic<std::uint64_t> bytes_out = 0;  // data of messages
  std::atomic<std::uint64_t> bytes_in = 0;
  std::atomic<std::uint64_t> doorbells = 0;  // groups of messages posted together
  std::atomic<std::uint64_t> wakeups = 0;    // times that the receiving thread had slept
};

class Channel {
 public:
  virtual ~Channel() = default;

  // One thread at a time posts. The data stays as it is until the peer has dealt with the message.
  virtual void post(const Message& message, const std::byte* data) = 0;
  // Rings the doorbell: the peer sees all that was posted. Never waits for the peer. host::Failure where it is gone.
  virtual void ring() = 0;

  // One thread receives: messages that came, after at most `patience` ns; 0: none came. Their slots hold their data.
  // host::Failure where the peer is gone or sends what has no meaning.
  virtual std::size_t receive(std::span<Message> into, std::int64_t patience) = 0;

  // From any thread: nothing is sent or received any more, and receive() returns.
  virtual void close() noexcept = 0;

  virtual const Slots& slots() const = 0;
  const ChannelCounters& counters() const { return counters_; }

 protected:
  ChannelCounters counters_;
};

}  // namespace lanewise::dispatch
