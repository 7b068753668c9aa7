// One direction of bytes over connected TCP sockets: a thread for each of them, sending or receiving without pause.
#pragma once

#include <map>
#include <memory>
#include <thread>

#include "host/memory.hpp"
#include "network/end.hpp"

namespace lanewise::network {

class TcpStream {
 public:
  // The sockets stay the caller's and must outlive this; the threads begin at once with the pattern.
  TcpStream(std::vector<int> sockets, bool sends, const Setup& setup, bool zero_copy);
  ~TcpStream();
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  bool ready() const { return stages_.ready(); }
  void go() { stages_.go(); }
  ByteCounters counters() const;
  // A sender finishes its message and says that no more comes; a receiver reads on to that end by itself, and stops
  // early only when told so.
  void stop() { stages_.stop(); }
  bool done() const { return stages_.done(); }
  std::map<int, std::size_t> nodes() const;
  bool copied() const { return copied_; }  // the kernel copied although it was asked for zero copies

 private:
  void run(std::size_t which);
  void send(std::size_t which);
  void receive(std::size_t which);
  void send_pattern(std::size_t which);
  void check_pattern(std::size_t which);

  std::vector<int> sockets_;
  bool sends_, zero_copy_;
  Setup setup_;
  std::vector<host::Memory> buffers_;
  std::unique_ptr<Count[]> moved_;
  std::atomic<bool> copied_{false};
  Stages stages_;
  std::vector<std::thread> threads_;
};

}  // namespace lanewise::network
