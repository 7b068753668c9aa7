// Small steps on a TCP socket that give up waiting ten times a second, so that a thread hears when it should stop.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstddef>
#include <string>

#include "host/failure.hpp"

namespace lanewise::network {

constexpr int kPatience = 100'000;  // us

inline void wait_in_steps(int socket) {
  const timeval patience{0, kPatience};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

inline host::Failure broken(const char* call, int error) {
  return host::system_failure(std::string("a connection broke (") + call + ")", error,
                              "look whether the other side still runs and what it says");
}

inline bool is_pause(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// How many bytes went, 0 after a pause.
inline std::size_t send_some(int socket, const std::byte* data, std::size_t bytes) {
  const ssize_t sent = ::send(socket, data, bytes, MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (is_pause(errno)) return 0;
  throw broken("send", errno);
}

// The same without a copy, 0 also where the kernel holds too many notes on finished sends (ENOBUFS).
inline std::size_t send_uncopied(int socket, const std::byte* data, std::size_t bytes) {
  const ssize_t sent = ::send(socket, data, bytes, MSG_NOSIGNAL | MSG_ZEROCOPY);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  const int error = errno;
  if (is_pause(error)) return 0;
  if (error != ENOBUFS) throw broken("send", error);
  pollfd wait{socket, 0, 0};  // a note is an error of the socket
  poll(&wait, 1, kPatience / 1000);
  return 0;
}

struct Received {
  std::size_t bytes = 0;  // 0 after a pause
  bool end = false;
};

inline Received receive_some(int socket, std::byte* data, std::size_t bytes) {
  const ssize_t got = ::recv(socket, data, bytes, 0);
  if (got > 0) return {static_cast<std::size_t>(got), false};
  if (got == 0) return {0, true};
  if (is_pause(errno)) return {};
  throw broken("recv", errno);
}

}  // namespace lanewise::network
