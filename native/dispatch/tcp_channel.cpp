#include "dispatch/tcp_channel.hpp"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "loadtest/clock.hpp"
#include "network/tcp_socket.hpp"

namespace lanewise::dispatch {

namespace {

using loadtest::now_ns;
using network::broken;
using network::is_pause;

constexpr std::size_t kBuffer = 1 << 16;         // for messages and short data
constexpr std::size_t kShort = 2048;             // bytes of data; a copy of so much costs less than a system call
constexpr std::size_t kVectors = 64;             // of one call; the kernel takes 1024
constexpr std::size_t kWorthZeroCopy = 1 << 14;  // bytes; below it pinning pages costs more than a copy

}  // namespace

TcpChannel::TcpChannel(int fd, const Slots& mine, const Slots& peers, std::shared_ptr<const void> keeper,
                       bool zero_copy)
    : fd_(fd),
      waker_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      mine_(mine),
      peers_(peers),
      keeper_(std::move(keeper)),
      zero_copy_(zero_copy),
      buffer_(kBuffer) {
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  zero_copy_ = zero_copy && setsockopt(fd_, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) == 0;
  if (waker_ >= 0) return;
  const int error = errno;
  ::close(fd_);
  throw host::system_failure("eventfd", error, "ulimit -n raises the number of open files");
}

TcpChannel::~TcpChannel() {
  ::close(waker_);
  ::close(fd_);
}

void TcpChannel::post(const Message& message, const std::byte* data) {
  if (!peers_.holds(message)) throw host::Failure("a message is larger than its slot", "please report this");
  const std::scoped_lock lock(sending_);
  outgoing_.push_back({message, data});
  if (is_transaction(message.kind)) ChannelCounters::add(counters_.posted, 1);
  ChannelCounters::add(counters_.bytes_out, message.bytes);
}

void TcpChannel::ring() {
  const std::scoped_lock lock(sending_);
  ChannelCounters::add(counters_.doorbells, 1);
  if (full_.load(std::memory_order_relaxed) || send_some()) return;
  full_.store(true);
  const std::uint64_t one = 1;
  // A full eventfd wakes as well.
  [[maybe_unused]] const ssize_t written = write(waker_, &one, sizeof one);
}

// Sends until all is gone (true) or the socket is full.
bool TcpChannel::send_some() {
  while (!outgoing_.empty()) {
    std::array<iovec, kVectors> vectors;
    std::size_t used = 0, skip = sent_;
    const auto add = [&](const void* data, std::size_t size) {
      const std::size_t left = size - std::min(skip, size);
      if (left > 0) vectors[used++] = {static_cast<std::byte*>(const_cast<void*>(data)) + (size - left), left};
      skip -= size - left;
    };
    for (const Outgoing& item : outgoing_) {
      if (used + 2 > kVectors) break;
      add(&item.message, sizeof item.message);
      add(item.data, item.message.bytes);
    }
    const ssize_t sent = send_vectors(std::span(vectors).first(used));
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && is_pause(errno)) return false;
    if (sent < 0) throw broken("send", errno);
    forget_sent(static_cast<std::size_t>(sent));
  }
  return true;
}

ssize_t TcpChannel::send_vectors(std::span<iovec> vectors) {
  msghdr header{};
  header.msg_iov = vectors.data();
  header.msg_iovlen = vectors.size();
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  if (!zero_copy_) return sendmsg(fd_, &header, kFlags);
  // One by one, as messages lie in outgoing_ for too short a time to be sent without a copy.
  header.msg_iovlen = 1;
  if (vectors.front().iov_len < kWorthZeroCopy)
    return sendmsg(fd_, &header, kFlags | (vectors.size() > 1 ? MSG_MORE : 0));
  const ssize_t sent = sendmsg(fd_, &header, kFlags | MSG_ZEROCOPY);
  if (sent >= 0 || errno != ENOBUFS) return sent;
  drop_notes();  // there are too many unread ones
  return sendmsg(fd_, &header, kFlags);
}

void TcpChannel::forget_sent(std::size_t bytes) {
  sent_ += bytes;
  while (!outgoing_.empty()) {
    const std::size_t whole = sizeof(Message) + outgoing_.front().message.bytes;
    if (sent_ < whole) return;
    sent_ -= whole;
    outgoing_.pop_front();
  }
}

// The kernel's notes that a send without a copy has ended: nothing waits for them, but they fill the socket's memory.
void TcpChannel::drop_notes() noexcept {
  std::array<std::byte, 128> control;
  msghdr header{};
  do {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  } while (recvmsg(fd_, &header, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0);
}

std::size_t TcpChannel::receive(std::span<Message> into, std::int64_t patience) {
  std::size_t got = parse(into);
  // What came is returned at once, so that its data is dealt with while it is in the caches. Reads without a look
  // first: at a busy connection there is something.
  for (bool may_wait = true; got == 0 && !closed_.load(std::memory_order_relaxed);) {
    if (!full_.load(std::memory_order_relaxed) && read_some()) {
      got = parse(into);
      continue;
    }
    if (!std::exchange(may_wait, false) || !wait(patience)) break;
    if (full_.load(std::memory_order_relaxed) && read_some()) got = parse(into);
  }
  return got;
}

// Waits for something to read, and sends meanwhile what the socket had no room for.
bool TcpChannel::wait(std::int64_t patience) {
  std::array<pollfd, 2> waits{{{fd_, POLLIN, 0}, {waker_, POLLIN, 0}}};
  if (full_.load()) waits[0].events |= POLLOUT;
  const timespec limit{patience / 1'000'000'000, patience % 1'000'000'000};
  int ready = poll(waits.data(), waits.size(), 0);
  // Not where it also waits for room: then both sides are busy.
  if (const std::int64_t look = ready == 0 && !full_.load() ? std::min(patience_.look(), patience) : 0; look > 0) {
    const std::int64_t end = now_ns() + look;
    while (ready == 0 && now_ns() < end) ready = poll(waits.data(), waits.size(), 0);
    patience_.tell(ready > 0);
  }
  if (ready == 0) {
    ChannelCounters::add(counters_.wakeups, 1);
    if (ppoll(waits.data(), waits.size(), &limit, nullptr) <= 0) return false;
  }
  if ((waits[1].revents & POLLIN) != 0) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t drained = read(waker_, &count, sizeof count);
  }
  if ((waits[0].revents & POLLERR) != 0 && zero_copy_) drop_notes();
  if ((waits[0].revents & POLLOUT) != 0) {
    const std::scoped_lock lock(sending_);
    if (send_some()) full_.store(false);
  }
  return (waits[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
}

// Messages whose data is in its slot.
std::size_t TcpChannel::parse(std::span<Message> into) {
  std::size_t got = 0;
  while (got < into.size()) {
    if (complete_) {
      into[got++] = current_;
      complete_ = false;
      if (is_transaction(current_.kind)) ChannelCounters::add(counters_.received, 1);
      ChannelCounters::add(counters_.bytes_in, current_.bytes);
    }
    if (missing_ > 0 || end_ - begin_ < sizeof(Message)) return got;
    std::memcpy(&current_, buffer_.data() + begin_, sizeof current_);
    begin_ += sizeof current_;
    if (!mine_.accepts(current_)) throw senseless();
    const std::size_t here = std::min<std::size_t>(current_.bytes, end_ - begin_);
    if (here > 0) std::memcpy(mine_.at(current_.slot), buffer_.data() + begin_, here);
    begin_ += here;
    missing_ = current_.bytes - here;
    complete_ = missing_ == 0;
  }
  return got;
}

// Reads what is missing of the current message into its slot, and what follows into the buffer; false: nothing there.
bool TcpChannel::read_some() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  std::array<iovec, 2> vectors;
  std::size_t used = 0;
  if (missing_ > 0) vectors[used++] = {mine_.at(current_.slot) + (current_.bytes - missing_), missing_};
  // Where data is long, no more than the next message goes to the buffer: its data goes from the socket into its slot.
  const std::size_t room = mine_.bytes > kShort ? sizeof(Message) : buffer_.size();
  vectors[used++] = {buffer_.data() + end_, room - end_};
  msghdr header{};
  header.msg_iov = vectors.data();
  header.msg_iovlen = used;
  const ssize_t got = recvmsg(fd_, &header, MSG_DONTWAIT);
  if (got == 0) throw host::Failure("the other side closed a connection", "look what it says");
  if (got < 0 && is_pause(errno)) return false;
  if (got < 0) throw broken("recv", errno);
  const std::size_t of_data = std::min(static_cast<std::size_t>(got), missing_);
  if (missing_ > 0 && of_data == missing_) complete_ = true;
  missing_ -= of_data;
  end_ += static_cast<std::size_t>(got) - of_data;
  return true;
}

void TcpChannel::close() noexcept {
  closed_.store(true);
  shutdown(fd_, SHUT_RDWR);
}

}  // namespace lanewise::dispatch
