// A connection over a TCP socket: each message as it lies in memory, its data behind it. Data goes from where it lies
// to the socket, and from there into its slot, without a copy between.
#pragma once

#include <sys/uio.h>

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "dispatch/channel.hpp"
#include "dispatch/doorbell.hpp"

namespace lanewise::dispatch {

class TcpChannel : public Channel {
 public:
  // `fd` is a connected socket, closed at the end. `mine`: the slots here that the peer fills; `peers`: the same of the
  // peer (only count and bytes are used). `keeper` keeps the slots' memory. `zero_copy`: samples leave without a copy
  // by the kernel, where it can (MSG_ZEROCOPY); their memory then stays as it is to the end.
  TcpChannel(int fd, const Slots& mine, const Slots& peers, std::shared_ptr<const void> keeper, bool zero_copy);
  ~TcpChannel() override;

  void post(const Message& message, const std::byte* data) override;
  // Hands over what the socket takes; the receiving thread sends the rest as soon as there is room.
  void ring() override;
  std::size_t receive(std::span<Message> into, std::int64_t patience) override;
  void close() noexcept override;
  const Slots& slots() const override { return mine_; }

 private:
  struct Outgoing {
    Message message;
    const std::byte* data;
  };

  bool send_some();
  ssize_t send_vectors(std::span<iovec> vectors);
  void forget_sent(std::size_t bytes);
  void drop_notes() noexcept;
  bool wait(std::int64_t patience);
  std::size_t parse(std::span<Message> into);
  bool read_some();

  int fd_;
  int waker_;  // an eventfd: there is something left to send
  Slots mine_, peers_;
  std::shared_ptr<const void> keeper_;
  bool zero_copy_;

  std::mutex sending_;  // whoever posts, and the receiving thread where the socket was full
  std::deque<Outgoing> outgoing_;
  std::size_t sent_ = 0;  // bytes of the first of them
  std::atomic<bool> full_ = false;

  // Of the receiving thread: bytes of messages that came, and how much of the data of the last one is missing.
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  Message current_;
  std::size_t missing_ = 0;
  Patience patience_{100'000};
  bool complete_ = false;  // current_ has all its data, and was not returned yet
  std::atomic<bool> closed_ = false;
};

}  // namespace lanewise::dispatch
