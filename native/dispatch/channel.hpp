// One side of a connection, as every transport has it: it puts messages into numbered slots of the peer's memory, and
// learns which of its own slots the peer has filled. Who posts manages the peer's slots: a slot is filled again only
// after its last message was dealt with, so a slow receiver is never overrun.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dispatch/message.hpp"
#include "host/failure.hpp"

namespace lanewise::dispatch {

inline constexpr std::size_t kMessages = 256;           // taken from a channel at once
inline constexpr std::int64_t kPatience = 100'000'000;  // ns between two looks whether to end

// The slots of one side that its peer fills.
struct Slots {
  std::byte* data = nullptr;
  std::uint32_t count = 0;
  std::size_t bytes = 0;   // of data at most
  std::size_t stride = 0;  // from one slot to the next
  bool has_text = false;   // behind the last: kTextBytes for replies, as slot number `count`

  std::byte* at(std::uint32_t slot) const { return data + slot * stride; }
  std::size_t extent() const { return count * stride + (has_text ? kTextBytes : 0); }  // bytes
  bool holds(const Message& message) const {
    return message.bytes <= (message.slot < count ? bytes : has_text && message.slot == count ? kTextBytes : 0);
  }
  // What the peer sent is not trusted.
  bool accepts(const Message& message) const { return message.kind <= MessageKind::kLast && holds(message); }
};

// What a side has sent and received; read while it goes on.
struct ChannelCounters {
  std::atomic<std::uint64_t> posted = 0;     // queries or answers
  std::atomic<std::uint64_t> received = 0;   // answers or queries
  std::atomic<std::uint64_t> bytes_out = 0;  // data of all messages
  std::atomic<std::uint64_t> bytes_in = 0;
  std::atomic<std::uint64_t> doorbells = 0;  // groups of messages posted together
  std::atomic<std::uint64_t> wakeups = 0;    // times that the receiving thread had slept

  // Only one thread at a time changes a counter: no need of a locked addition.
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t more) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
};

class Channel {
 public:
  virtual ~Channel() = default;

  // Where the data of messages will lie, before the first is posted: a NIC reads only what was registered.
  // host::Failure where that cannot be done.
  virtual void register_source(std::span<const std::byte>) {}
  // One thread at a time posts. The data stays as it is until the peer has dealt with the message.
  virtual void post(const Message& message, const std::byte* data) = 0;
  // Rings the doorbell: the peer sees all that was posted. Never waits until the peer reads it. host::Failure where it
  // is gone.
  virtual void ring() = 0;

  // One thread receives: messages that came, after at most `patience` ns; 0: none came. Their slots hold their data.
  // host::Failure where the peer is gone or sends what has no meaning.
  virtual std::size_t receive(std::span<Message> into, std::int64_t patience) = 0;

  // From any thread: nothing is sent or received any more, and receive() returns.
  virtual void close() noexcept = 0;

  virtual const Slots& slots() const = 0;
  const ChannelCounters& counters() const { return counters_; }

 protected:
  // The other side does not keep to the protocol.
  static host::Failure senseless();
  // Takes the messages of a ring from number `first` on, and counts them; host::Failure for one without meaning.
  void take(std::span<Message> into, std::span<const Message> ring, std::uint32_t first);

  ChannelCounters counters_;
};

}  // namespace lanewise::dispatch
