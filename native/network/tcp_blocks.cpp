#include "network/tcp_blocks.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>

#include "network/tcp_socket.hpp"

namespace lanewise::network {
namespace {

constexpr int kMostPauses = 100;  // of a tenth of a second each, until a transfer that stands still is given up
constexpr std::size_t kMostInCall = 1024;  // IOV_MAX of Linux

}  // namespace

TcpBlocks::TcpBlocks(int socket, bool sends, const Setup& setup, std::size_t count, std::size_t list)
    : socket_(socket),
      sends_(sends),
      setup_(setup),
      list_(std::clamp<std::size_t>(list, 1, kMostInCall)),
      memory_(count * setup.bytes, setup.node),
      places_(block_places(count, sends)),
      stages_(sends ? 0 : 1) {
  wait_in_steps(socket_);
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // else the last blocks wait for a delayed ACK
  if (sends_) {
    fill_blocks(memory_.data(), places_, setup_.bytes, setup_.bytes, setup_.seed);
  } else {
    thread_ = std::thread(&TcpBlocks::receive, this);
  }
}

TcpBlocks::~TcpBlocks() {
  stages_.abandon();
  if (thread_.joinable()) thread_.join();
}

bool TcpBlocks::ready() const { return stages_.ready(); }

void TcpBlocks::check() const {
  stages_.check();
  if (!sends_) check_blocks(memory_.data(), places_, setup_.bytes, setup_.bytes, setup_.seed);
}

void TcpBlocks::stop() {
  if (sends_) shutdown(socket_, SHUT_WR);
}

void TcpBlocks::await(short event) const {
  for (int pauses = 0; pauses < kMostPauses; ++pauses) {
    pollfd wait{socket_, event, 0};
    if (poll(&wait, 1, kPatience / 1000) > 0) return;
  }
  throw host::Failure("the other side takes no more blocks", "look whether it still runs and what it says");
}

// One call for as many blocks as a list holds, from byte `done` of the transfer on; the bytes that went, 0 for none.
std::size_t TcpBlocks::move(std::size_t done, bool wait) {
  std::array<iovec, kMostInCall> list{};
  std::size_t entries = 0;
  std::size_t skip = done % setup_.bytes;
  for (std::size_t i = done / setup_.bytes; i < places_.size() && entries < list_; ++i) {
    list[entries++] = {memory_.data() + places_[i] * setup_.bytes + skip, setup_.bytes - skip};
    skip = 0;
  }
  msghdr message{};
  message.msg_iov = list.data();
  message.msg_iovlen = entries;
  const int flags = wait ? 0 : MSG_DONTWAIT;
  const ssize_t moved = sends_ ? sendmsg(socket_, &message, flags | MSG_NOSIGNAL) : recvmsg(socket_, &message, flags);
  if (moved > 0) return static_cast<std::size_t>(moved);
  if (moved == 0) throw host::Failure("the other side ended a transfer early", "look what it says");
  if (is_pause(errno)) return 0;
  throw broken(sends_ ? "sendmsg" : "recvmsg", errno);
}

BlockTimes TcpBlocks::transfer() {
  BlockTimes times;
  const double begun = now_seconds();
  for (std::size_t done = 0; done < memory_bytes();) {
    const double before = now_seconds();
    const std::size_t moved = move(done, false);
    if (moved > 0) {
      times.posting += now_seconds() - before;
      done += moved;
    } else {
      await(POLLOUT);
    }
  }
  std::byte answer{};
  for (;;) {
    await(POLLIN);
    const double before = now_seconds();
    const Received received = receive_some(socket_, &answer, 1);
    if (received.end) throw host::Failure("the other side ended a transfer early", "look what it says");
    if (received.bytes == 0) continue;
    const double end = now_seconds();
    times.completing += end - before;
    times.seconds = end - begun;
    return times;
  }
}

void TcpBlocks::receive() {
  stages_.guard([this] {
    host::pin_thread(setup_.cpus);
    for (bool first = true; receive_all(); first = false) {
      const std::byte answer{1};
      while (send_some(socket_, &answer, 1) == 0 && !stages_.stopped()) {
      }
      if (first) stages_.verified();
    }
  });
  stages_.ended();
}

bool TcpBlocks::receive_all() {
  for (std::size_t done = 0; done < memory_bytes();) {
    if (stages_.stopped()) return false;
    if (done == 0) {  // the end may come between two transfers, and only there
      std::byte next{};
      const ssize_t more = recv(socket_, &next, 1, MSG_PEEK);
      if (more == 0) return false;
      if (more < 0 && !is_pause(errno)) throw broken("recv", errno);
      if (more < 0) continue;
    }
    done += move(done, true);
  }
  return true;
}

}  // namespace lanewise::network
