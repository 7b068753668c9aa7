// A connection within one host: both sides map the same memory. Who posts copies the data into the peer's slot, as a
// NIC would by RDMA write, and its message into a ring; the ring's count is the doorbell.
#pragma once

#include <memory>

#include "dispatch/channel.hpp"
#include "dispatch/doorbell.hpp"
#include "dispatch/shared_memory.hpp"

namespace lanewise::dispatch {

// Messages in one direction: one thread posts, one receives. It lies in shared memory.
struct MessageRing {
  alignas(64) Doorbell posted;  // messages so far, modulo 2^32
  alignas(64) std::atomic<std::uint32_t> consumed = 0;
  alignas(64) Message items[1];  // as many as there is room for

  static std::size_t bytes(std::uint32_t capacity) { return sizeof(MessageRing) + capacity * sizeof(Message); }
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
  MessageRing& ring_at(std::size_t index) const;
  bool wait(std::int64_t patience) noexcept;

  std::shared_ptr<SharedMemory> memory_, samples_;
  std::uint32_t capacity_;
  Slots mine_, peers_;
  MessageRing& out_;
  MessageRing& in_;
  std::uint32_t posted_ = 0;    // of out_, in front of its count until ring()
  std::uint32_t consumed_ = 0;  // of in_
  Patience patience_;
  std::atomic<bool> closed_ = false;
};

}  // namespace lanewise::dispatch
