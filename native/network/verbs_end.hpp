// One side of RC queue pairs between two processes: RDMA write and read, send and receive, and round trips.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "network/end.hpp"
#include "network/round_trips.hpp"
#include "network/verbs_address.hpp"

namespace lanewise::network {

// What this side's thread does. kNothing: its memory is written or read by the other side.
enum class Work { kWrite, kRead, kSend, kReceive, kNothing, kAskWrite, kAnswerWrite, kAskSend, kAnswerSend };

struct VerbsSetup {
  Setup common;
  VerbsPort port{};
  Work work = Work::kNothing;
  bool is_source = false;  // the data comes from here
  int pairs = 1;
  int depth = 64;         // work requests outstanding on a queue pair
  int inline_bytes = 0;   // messages up to this size are handed over with the request
  bool events = false;    // sleep until a completion arrives, rather than look without pause
  std::size_t slots = 0;  // buffers of a message, if more than the queue pairs need
};

// Names of the RDMA devices; host::Failure where verbs are not compiled in or not installed.
std::vector<std::string> verbs_devices();

class VerbsEnd {
 public:
  explicit VerbsEnd(const VerbsSetup& setup);
  ~VerbsEnd();
  VerbsEnd(const VerbsEnd&) = delete;
  VerbsEnd& operator=(const VerbsEnd&) = delete;

  VerbsAddress address() const;
  void connect(const VerbsAddress& peer);
  void begin();  // once both sides are connected: moves the pattern
  bool ready() const;
  void check() const;  // between ready and go: compares what arrived; host::Failure if it differs
  void go();
  ByteCounters counters() const;
  RoundTrips take();
  void stop();
  bool done() const;
  std::map<int, std::size_t> nodes() const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

}  // namespace lanewise::network
