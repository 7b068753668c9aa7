#include "network/tcp_ping.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "network/pattern.hpp"
#include "network/tcp_socket.hpp"

namespace lanewise::network {
namespace {

constexpr std::uint64_t kFirst = 20;  // round trips whose data is compared, and that warm the way up

}  // namespace

TcpPing::TcpPing(int socket, bool asks, const Setup& setup)
    : socket_(socket), asks_(asks), setup_(setup), buffer_(setup.bytes, setup.node), stages_(1) {
  wait_in_steps(socket_);
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  thread_ = std::thread(&TcpPing::run, this);
}

TcpPing::~TcpPing() {
  stages_.abandon();
  thread_.join();
}

void TcpPing::run() {
  stages_.guard([this] {
    host::pin_thread(setup_.cpus);
    asks_ ? ask() : answer();
  });
  shutdown(socket_, SHUT_WR);
  stages_.ended();
}

void TcpPing::ask() {
  for (std::uint64_t i = 0; i < kFirst; ++i) {
    const std::span<std::byte> message{buffer_.data(), setup_.bytes};
    fill_pattern(message, setup_.seed + i, 0);
    if (!send_all() || !receive_all()) return;
    if (first_fault(message, setup_.seed + i, 0) != kNoFault) {
      throw host::Failure("a message came back changed", "do not trust this path: look at the card and its driver");
    }
  }
  stages_.verified();
  if (!stages_.wait_for_go()) return;
  while (!stages_.stopped()) {
    const std::uint64_t start = now_nanoseconds();
    if (!send_all() || !receive_all()) return;
    tally_.add(now_nanoseconds() - start);
  }
}

void TcpPing::answer() {
  stages_.verified();
  while (receive_all() && send_all()) {
  }
}

bool TcpPing::send_all() {
  for (std::size_t gone = 0; gone < setup_.bytes;) {
    const std::size_t sent = send_some(socket_, buffer_.data() + gone, setup_.bytes - gone);
    if (stages_.abandoned() || (sent == 0 && stages_.stopped())) return false;
    gone += sent;
  }
  return true;
}

// False at the end of the connection, and when told to stop while nothing comes.
bool TcpPing::receive_all() {
  for (std::size_t come = 0; come < setup_.bytes;) {
    const auto received = receive_some(socket_, buffer_.data() + come, setup_.bytes - come);
    if (received.end && asks_) throw host::Failure("the other side ended the connection", "look what it says");
    if (received.end || stages_.abandoned() || (received.bytes == 0 && stages_.stopped())) return false;
    come += received.bytes;
  }
  return true;
}

}  // namespace lanewise::network
