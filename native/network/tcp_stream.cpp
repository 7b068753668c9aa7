#include "network/tcp_stream.hpp"

#include <linux/errqueue.h>
#include <netinet/in.h>

#include <algorithm>
#include <span>
#include <utility>

#include "network/pattern.hpp"
#include "network/tcp_socket.hpp"

namespace lanewise::network {
namespace {

constexpr int kGrace = 10;  // pauses after the stop: notes outstanding or a full buffer for a moment are no end
constexpr int kSendsPerReap = 16;

// Takes the kernel's notes on finished zero-copy sends off a socket; true if it copied after all.
bool reap(int socket) {
  bool copied = false;
  for (;;) {
    char control[128];
    msghdr message{};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return copied;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
      const auto* error = reinterpret_cast<const sock_extended_err*>(CMSG_DATA(header));
      if (error->ee_origin == SO_EE_ORIGIN_ZEROCOPY && (error->ee_code & SO_EE_CODE_ZEROCOPY_COPIED)) copied = true;
    }
  }
}

}  // namespace

TcpStream::TcpStream(std::vector<int> sockets, bool sends, const Setup& setup, bool zero_copy)
    : sockets_(std::move(sockets)),
      sends_(sends),
      zero_copy_(zero_copy && sends),
      setup_(setup),
      moved_(std::make_unique<Count[]>(sockets_.size())),
      stages_(sockets_.size()) {
  for (const int socket : sockets_) {
    wait_in_steps(socket);
    const int on = 1;
    if (zero_copy_ && setsockopt(socket, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0) {
      throw host::system_failure("the kernel sends nothing without a copy", errno, "leave --zero-copy out");
    }
    buffers_.emplace_back(setup_.bytes, setup_.node);
  }
  try {
    for (std::size_t i = 0; i < sockets_.size(); ++i) threads_.emplace_back(&TcpStream::run, this, i);
  } catch (...) {
    stages_.stop();
    for (auto& thread : threads_) thread.join();
    throw;
  }
}

TcpStream::~TcpStream() {
  stages_.abandon();
  for (auto& thread : threads_) thread.join();
}

ByteCounters TcpStream::counters() const {
  stages_.check();
  ByteCounters now{now_seconds(), {}};
  for (std::size_t i = 0; i < sockets_.size(); ++i)
    now.bytes.push_back(moved_[i].value.load(std::memory_order_relaxed));
  return now;
}

std::map<int, std::size_t> TcpStream::nodes() const {
  std::map<int, std::size_t> all;
  for (const auto& buffer : buffers_) {
    for (const auto& [node, pages] : buffer.nodes()) all[node] += pages;
  }
  return all;
}

void TcpStream::run(std::size_t which) {
  stages_.guard([&] {
    host::pin_thread(setup_.cpus);
    sends_ ? send_pattern(which) : check_pattern(which);
    stages_.verified();
    if (stages_.wait_for_go()) sends_ ? send(which) : receive(which);
  });
  if (sends_) shutdown(sockets_[which], SHUT_WR);
  stages_.ended();
}

void TcpStream::send_pattern(std::size_t which) {
  std::byte* const data = buffers_[which].data();
  std::uint64_t offset = 0;
  for (const std::uint64_t all = pattern_length(setup_.bytes); offset < all;) {
    const std::size_t piece = std::min<std::uint64_t>(setup_.bytes, all - offset);
    fill_pattern({data, piece}, setup_.seed + which, offset);
    for (std::size_t gone = 0; gone < piece && !stages_.stopped();) {
      gone += send_some(sockets_[which], data + gone, piece - gone);
    }
    if (stages_.stopped()) return;
    offset += piece;
  }
}

void TcpStream::check_pattern(std::size_t which) {
  std::byte* const data = buffers_[which].data();
  std::uint64_t offset = 0;
  for (const std::uint64_t all = pattern_length(setup_.bytes); offset < all && !stages_.stopped();) {
    const auto received = receive_some(sockets_[which], data, std::min<std::uint64_t>(setup_.bytes, all - offset));
    if (received.end) throw host::Failure("the other side ended a connection early", "look what it says");
    const std::size_t fault = first_fault({data, received.bytes}, setup_.seed + which, offset);
    if (fault != kNoFault) {
      throw host::Failure(
          "data arrived changed: connection " + std::to_string(which) + ", byte " + std::to_string(offset + fault),
          "do not trust this path: look at the card, its driver and the kernel's log");
    }
    offset += received.bytes;
  }
}

void TcpStream::send(std::size_t which) {
  const int socket = sockets_[which];
  const std::byte* const data = buffers_[which].data();
  auto& moved = moved_[which].value;
  std::size_t gone = 0;
  int pauses = 0;
  for (int sends = 1; gone != 0 || !stages_.stopped(); ++sends) {
    const std::size_t left = setup_.bytes - gone;
    const std::size_t sent =
        zero_copy_ ? send_uncopied(socket, data + gone, left) : send_some(socket, data + gone, left);
    moved.store(moved.load(std::memory_order_relaxed) + sent, std::memory_order_relaxed);
    gone = (gone + sent) % setup_.bytes;
    if (zero_copy_ && (sent == 0 || sends % kSendsPerReap == 0) && reap(socket)) copied_ = true;
    // A piece that was begun is sent to its end, unless the other side takes nothing any more.
    pauses = sent == 0 && stages_.stopped() ? pauses + 1 : 0;
    if (stages_.abandoned() || pauses >= kGrace) return;
  }
}

void TcpStream::receive(std::size_t which) {
  std::byte* const data = buffers_[which].data();
  auto& moved = moved_[which].value;
  for (;;) {
    const auto received = receive_some(sockets_[which], data, setup_.bytes);
    moved.store(moved.load(std::memory_order_relaxed) + received.bytes, std::memory_order_relaxed);
    if (received.end || stages_.abandoned() || (received.bytes == 0 && stages_.stopped())) return;
  }
}

}  // namespace lanewise::network
