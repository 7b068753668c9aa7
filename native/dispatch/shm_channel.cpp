#include "dispatch/shm_channel.hpp"

#include <algorithm>
#include <cstring>

#include "host/failure.hpp"
#include "loadtest/clock.hpp"

namespace lanewise::dispatch {

namespace {

using loadtest::now_ns;

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
  if (posted_ - out_.consumed.load(std::memory_order_acquire) >= capacity_)
    throw host::Failure("the other side of a connection does not read its messages", "look whether it still runs");
  if (message.bytes > 0) std::memcpy(peers_.at(message.slot), data, message.bytes);
  out_.items[posted_ & (capacity_ - 1)] = message;
  ++posted_;
  counters_.posted.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes_out.fetch_add(message.bytes, std::memory_order_relaxed);
}

void ShmChannel::ring() {
  counters_.doorbells.fetch_add(1, std::memory_order_relaxed);
  out_.posted.ring(posted_);
}

// Whether there is a message.
bool ShmChannel::wait(std::int64_t patience) noexcept {
  const auto came = [this] { return in_.posted.count.load(std::memory_order_acquire) != consumed_; };
  if (came()) return true;
  if (const std::int64_t look = std::min(patience_.look(), patience); look > 0) {
    const std::int64_t end = now_ns() + look;
    while (!came() && now_ns() < end && !closed_.load(std::memory_order_relaxed)) pause();
    patience_.tell(came());
    if (came()) return true;
  }
  if (closed_.load()) return false;
  in_.posted.sleep(consumed_, patience);
  counters_.wakeups.fetch_add(1, std::memory_order_relaxed);
  return came();
}

std::size_t ShmChannel::receive(std::span<Message> into, std::int64_t patience) {
  if (!wait(patience)) return 0;
  const std::uint32_t count = in_.posted.count.load(std::memory_order_acquire) - consumed_;
  if (count > capacity_) throw senseless();
  const std::size_t taken = std::min<std::size_t>(count, into.size());
  take(into.first(taken), {in_.items, capacity_}, consumed_);
  consumed_ += static_cast<std::uint32_t>(taken);
  in_.consumed.store(consumed_, std::memory_order_release);
  return taken;
}

void ShmChannel::close() noexcept {
  closed_.store(true);
  in_.posted.wake();
}

}  // namespace lanewise::dispatch
