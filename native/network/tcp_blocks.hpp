// Blocks over one connected TCP socket: a list of them with each call, an answer of one byte after the last.
#pragma once

#include <map>
#include <thread>

#include "host/memory.hpp"
#include "network/block_list.hpp"
#include "network/end.hpp"

namespace lanewise::network {

class TcpBlocks {
 public:
  // The socket stays the caller's and must outlive this; the receiving side's thread begins at once. `list`: blocks
  // that a call posts.
  TcpBlocks(int socket, bool sends, const Setup& setup, std::size_t count, std::size_t list);
  ~TcpBlocks();
  TcpBlocks(const TcpBlocks&) = delete;
  TcpBlocks& operator=(const TcpBlocks&) = delete;

  BlockTimes transfer();  // of the sending side, in the calling thread
  bool ready() const;     // whether the first transfer has arrived
  void check() const;     // compares what arrived; host::Failure if it differs
  void stop();            // the sender says that no more comes; the receiver sees it by itself
  bool done() const { return stages_.done(); }
  std::map<int, std::size_t> nodes() const { return memory_.nodes(); }

 private:
  void receive();
  bool receive_all();  // one transfer; false at the end
  std::size_t memory_bytes() const { return places_.size() * setup_.bytes; }
  std::size_t move(std::size_t done, bool wait);
  void await(short event) const;

  int socket_;
  bool sends_;
  Setup setup_;
  std::size_t list_;
  host::Memory memory_;
  std::vector<std::uint32_t> places_;
  Stages stages_;
  std::thread thread_;
};

}  // namespace lanewise::network
