// A connection within one host: both sides map the same memory. Who posts copies the data into the peer's slot, as a
// NIC would by RDMA write, and its message into a ring. A message is numbered when its doorbell is rung; who looks for
// it looks at the number, so that it comes with the message, and sleeps on the ring's count. Data that fits into the
// rest of a cache line travels there too; the receiver puts it into the slot.
#pragma once

#include <array>
#include <memory>

#include "dispatch/channel.hpp"
#include "dispatch/doorbell.hpp"
#include "dispatch/shared_memory.hpp"

namespace lanewise::dispatch {

// Messages in one direction: one thread posts, one receives. It lies in shared memory.
struct MessageRing {
  alignas(64) Doorbell posted;  // messages so far, modulo 2^32
  alignas(64) std::atomic<std::uint32_t> consumed = 0;
  struct alignas(64) Item {
    Message message;
    std::atomic<std::uint32_t> number;  // of the message that lies here, counted from 1
    std::array<std::byte, 36> data;
  };
  Item items[1];  // as many as there is room for

  static std::size_t bytes(std::uint32_t capacity) { return sizeof(MessageRing) + capacity * sizeof(Item); }
};

// What a connection consists of; both sides compute the same from the same figures.
struct ShmLayout {
  std::uint32_t slots;       // transactions in flight at most
  std::size_t sample_bytes;  // of a slot at the node
  std::size_t answer_bytes;  // of a slot at the Frontend

  std::uint32_t capacity() const { return ring_capacity(slots); }
  std::size_t answer_stride() const { return (answer_bytes + 63) / 64 * 64; }
  std::size_t ring_bytes() const { return (MessageRing::bytes(capacity()) + 63) / 64 * 64; }
  std::size_t answers_at() const { return 2 * ring_bytes(); }
  std::size_t total() const { return answers_at() + slots * answer_stride() + kTextBytes; }
};

class ShmChannel : public Channel {
 public:
  enum class Side { kFrontend, kNode };

  // `memory` has the layout; `samples` the node's slots of this connection, from byte `samples_at` on, `sample_stride`
  // apart.
  ShmChannel(Side side, const ShmLayout& layout, std::shared_ptr<SharedMemory> memory,
             std::shared_ptr<SharedMemory> samples, std::size_t samples_at, std::size_t sample_stride);

  void post(const Message& message, const std::byte* data) override;
  void ring() override;
  std::size_t receive(std::span<Message> into, std::int64_t patience) override;
  void close() noexcept override;
  const Slots& slots() const override { return mine_; }

 private:
  bool came(std::uint32_t before) const noexcept;
  bool wait(std::int64_t patience);

  std::shared_ptr<SharedMemory> memory_, samples_;
  std::uint32_t capacity_;
  Slots mine_, peers_;
  MessageRing& out_;
  MessageRing& in_;
  // Of out_: in front of its count until ring(); its count; consumed by the peer at least.
  std::uint32_t posted_ = 0, rung_ = 0, freed_ = 0;
  std::uint32_t consumed_ = 0;  // of in_
  Patience patience_{30'000};
  std::atomic<bool> closed_ = false;
};

}  // namespace lanewise::dispatch
