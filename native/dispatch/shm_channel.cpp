#include "dispatch/shm_channel.hpp"

#include <algorithm>
#include <cstring>

#include "host/failure.hpp"
#include "loadtest/clock.hpp"

namespace lanewise::dispatch {

namespace {

using loadtest::now_ns;

constexpr int kLooks = 32;  // at a message, between two at the clock

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ShmChannel::ShmChannel(Side side, const ShmLayout& layout, std::shared_ptr<SharedMemory> memory,
                       std::shared_ptr<SharedMemory> samples, std::size_t samples_at, std::size_t sample_stride)
    : memory_(std::move(memory)),
      samples_(std::move(samples)),
      capacity_(layout.capacity()),
      out_(*reinterpret_cast<MessageRing*>(memory_->data() + (side == Side::kFrontend ? 0 : layout.ring_bytes()))),
      in_(*reinterpret_cast<MessageRing*>(memory_->data() + (side == Side::kFrontend ? layout.ring_bytes() : 0))) {
  if (memory_->size() < layout.total() || samples_at + layout.slots * sample_stride > samples_->size()) {
    throw host::Failure("shared memory is smaller than its slots", "use the same version of Lanewise on both sides");
  }
  std::byte* const answers = memory_->data() + layout.answers_at();
  const Slots at_node{.data = samples_->data() + samples_at,
                      .count = layout.slots,
                      .bytes = layout.sample_bytes,
                      .stride = sample_stride};
  const Slots at_frontend{.data = answers,
                          .count = layout.slots,
                          .bytes = layout.answer_bytes,
                          .stride = layout.answer_stride(),
                          .has_text = true};
  mine_ = side == Side::kFrontend ? at_frontend : at_node;
  peers_ = side == Side::kFrontend ? at_node : at_frontend;
}

void ShmChannel::post(const Message& message, const std::byte* data) {
  if (!peers_.holds(message)) throw host::Failure("a message is larger than its slot", "please report this");
  // The peer's count is another CPU's: it is read only where the ring could be full.
  if (posted_ - freed_ >= capacity_) freed_ = out_.consumed.load(std::memory_order_acquire);
  if (posted_ - freed_ >= capacity_)
    throw host::Failure("the other side of a connection does not read its messages", "look whether it still runs");
  MessageRing::Item& item = out_.items[posted_ & (capacity_ - 1)];
  item.message = message;
  std::byte* const to = message.bytes <= item.data.size() ? item.data.data() : peers_.at(message.slot);
  if (message.bytes > 0) std::memcpy(to, data, message.bytes);
  ++posted_;
  if (is_transaction(message.kind)) ChannelCounters::add(counters_.posted, 1);
  ChannelCounters::add(counters_.bytes_out, message.bytes);
}

void ShmChannel::ring() {
  ChannelCounters::add(counters_.doorbells, 1);
  for (; rung_ != posted_; ++rung_) {
    out_.items[rung_ & (capacity_ - 1)].number.store(rung_ + 1, std::memory_order_release);
  }
  out_.posted.ring(posted_);
}

// Whether there is a message behind the first `before` ones that were not consumed.
bool ShmChannel::came(std::uint32_t before) const noexcept {
  const std::uint32_t number = consumed_ + before;
  return in_.items[number & (capacity_ - 1)].number.load(std::memory_order_acquire) == number + 1;
}

// Whether there is a message.
bool ShmChannel::wait(std::int64_t patience) {
  if (came(0)) return true;
  if (const std::int64_t look = std::min(patience_.look(), patience); look > 0) {
    const std::int64_t end = now_ns() + look;
    do {
      // The clock takes longer to read than the number.
      for (int i = 0; i < kLooks && !came(0); ++i) pause();
    } while (!came(0) && now_ns() < end && !closed_.load(std::memory_order_relaxed));
    patience_.tell(came(0));
    if (came(0)) return true;
  }
  if (closed_.load()) return false;
  // Messages are numbered before they are counted: a count may lag behind what was consumed, but not lead to nothing.
  const std::uint32_t count = in_.posted.count.load(std::memory_order_acquire);
  if (static_cast<std::int32_t>(count - consumed_) > 0 && !came(0)) {
    throw senseless();
  }
  in_.posted.sleep(consumed_, patience);
  ChannelCounters::add(counters_.wakeups, 1);
  return came(0);
}

std::size_t ShmChannel::receive(std::span<Message> into, std::int64_t patience) {
  if (!wait(patience)) return 0;
  std::uint32_t taken = 0;
  std::uint64_t bytes = 0, count = 0;
  for (; taken < into.size() && came(taken); ++taken) {
    const MessageRing::Item& item = in_.items[(consumed_ + taken) & (capacity_ - 1)];
    Message& message = into[taken] = item.message;  // a copy: the peer could change it after the check
    if (!mine_.accepts(message)) throw senseless();
    if (message.bytes > 0 && message.bytes <= item.data.size()) {
      std::memcpy(mine_.at(message.slot), item.data.data(), message.bytes);
    }
    bytes += message.bytes;
    count += is_transaction(message.kind) ? 1 : 0;
  }
  consumed_ += taken;
  in_.consumed.store(consumed_, std::memory_order_release);
  ChannelCounters::add(counters_.received, count);
  ChannelCounters::add(counters_.bytes_in, bytes);
  return taken;
}

void ShmChannel::close() noexcept {
  closed_.store(true);
  in_.posted.wake();
}

}  // namespace lanewise::dispatch
