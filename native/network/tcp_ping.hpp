// Messages back and forth over one TCP connection: one side asks and takes the time, the other answers.
#pragma once

#include <map>
#include <thread>

#include "host/memory.hpp"
#include "network/end.hpp"
#include "network/round_trips.hpp"

namespace lanewise::network {

class TcpPing {
 public:
  TcpPing(int socket, bool asks, const Setup& setup);
  ~TcpPing();
  TcpPing(const TcpPing&) = delete;
  TcpPing& operator=(const TcpPing&) = delete;

  bool ready() const { return stages_.ready(); }
  void go() { stages_.go(); }
  RoundTrips take() {
    stages_.check();
    return tally_.take();
  }
  void stop() { stages_.stop(); }
  bool done() const { return stages_.done(); }
  std::map<int, std::size_t> nodes() const { return buffer_.nodes(); }

 private:
  void run();
  void ask();
  void answer();
  bool send_all();
  bool receive_all();

  int socket_;
  bool asks_;
  Setup setup_;
  host::Memory buffer_;
  Tally tally_;
  Stages stages_;
  std::thread thread_;
};

}  // namespace lanewise::network
