#include "network/verbs_end.hpp"

#include "network/verbs_resources.hpp"

#ifndef LANEWISE_VERBS

namespace lanewise::network {
namespace {
[[noreturn]] void absent() {
  throw host::Failure("this build of Lanewise has no verbs", "install libibverbs-dev (rdma-core), then Lanewise again");
}
}  // namespace

class VerbsEnd::Body {};
std::vector<std::string> verbs_devices() { absent(); }
VerbsEnd::VerbsEnd(const VerbsSetup&) { absent(); }
VerbsEnd::~VerbsEnd() = default;
VerbsAddress VerbsEnd::address() const { absent(); }
void VerbsEnd::connect(const VerbsAddress&) { absent(); }
void VerbsEnd::begin() { absent(); }
bool VerbsEnd::ready() const { absent(); }
void VerbsEnd::check() const { absent(); }
void VerbsEnd::go() { absent(); }
ByteCounters VerbsEnd::counters() const { absent(); }
RoundTrips VerbsEnd::take() { absent(); }
void VerbsEnd::stop() { absent(); }
bool VerbsEnd::done() const { absent(); }
std::map<int, std::size_t> VerbsEnd::nodes() const { absent(); }
}  // namespace lanewise::network

#else
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "network/pattern.hpp"

namespace lanewise::network {
namespace {

constexpr double kDrain = 8.0;                // s to wait for what is under way when told to stop
constexpr int kFirstRoundTrips = 3;           // before the time is taken
constexpr unsigned kLooksPerYield = 1 << 14;  // a side that looks without pause lets others run now and then
constexpr std::uint64_t kReceiveMark = 1ULL << 32;

}  // namespace

std::vector<std::string> verbs_devices() {
  const VerbsLibrary& ibv = verbs_library();
  int count = 0;
  ibv_device** const list = ibv.get_device_list(&count);
  std::vector<std::string> names;
  for (int i = 0; list != nullptr && i < count; ++i) names.emplace_back(ibv.get_device_name(list[i]));
  if (list != nullptr) ibv.free_device_list(list);
  return names;
}

class VerbsEnd::Body {
 public:
  explicit Body(const VerbsSetup& setup)
      : setup_(setup),
        bytes_(setup.common.bytes),
        resources_(setup),
        moved_(std::make_unique<Count[]>(static_cast<std::size_t>(setup.pairs))),
        outstanding_(static_cast<std::size_t>(setup.pairs), 0),
        stages_(1) {
    std::memset(resources_.memory().data(), 0, resources_.memory().size());
    for (std::size_t i = 0; i < (is_ping() ? 1 : resources_.pairs()); ++i) {
      if (is_ping() || setup_.is_source) fill_pattern({resources_.slot(i), bytes_}, setup_.common.seed + i, 0);
    }
  }
  ~Body() {
    stages_.abandon();
    if (thread_.joinable()) thread_.join();
  }

  VerbsResources& resources() { return resources_; }
  Stages& stages() { return stages_; }
  Tally& tally() { return tally_; }

  void begin() {
    if (thread_.joinable()) throw host::Failure("this side has begun already", "make a new one for another stream");
    thread_ = std::thread(&Body::run, this);
  }

  ByteCounters counters() const {
    stages_.check();
    ByteCounters now{now_seconds(), {}};
    for (std::size_t i = 0; i < resources_.pairs(); ++i) now.bytes.push_back(moved_[i].value.load());
    return now;
  }

  void check() const {
    if (!is_ping() && setup_.is_source) return;
    const std::size_t compared = is_ping() ? bytes_ - 1 : bytes_;  // a ping's last byte is its number
    for (std::size_t i = 0; i < (is_ping() ? 1 : resources_.pairs()); ++i) {
      const std::size_t slot = is_ping() ? 1 : i;
      const std::size_t fault = first_fault({resources_.slot(slot), compared}, setup_.common.seed + i, 0);
      if (fault == kNoFault) continue;
      throw host::Failure("data arrived changed: queue pair " + std::to_string(i) + ", byte " + std::to_string(fault),
                          "do not trust this path: look at the card, its driver and the kernel's log");
    }
  }

 private:
  bool is_ping() const { return setup_.work >= Work::kAskWrite; }
  bool asks() const { return setup_.work == Work::kAskWrite || setup_.work == Work::kAskSend; }
  bool counts_requests() const {
    return setup_.work == Work::kWrite || setup_.work == Work::kRead || setup_.work == Work::kSend;
  }

  void run() {
    stages_.guard([this] {
      host::pin_thread(setup_.common.cpus);
      if (is_ping()) {
        ping();
      } else if (counts_requests()) {
        request();
      } else if (setup_.work == Work::kReceive) {
        receive();
      } else {
        stages_.verified();
        while (stages_.wait_for_go() && !stages_.stopped()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
    stages_.ended();
  }

  void post(std::size_t which, ibv_wr_opcode opcode, std::size_t from, std::size_t to) {
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(resources_.slot(from)), static_cast<std::uint32_t>(bytes_),
                  resources_.key()};
    ibv_send_wr request{}, *refused = nullptr;
    request.wr_id = which;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    const bool fits = bytes_ <= static_cast<std::size_t>(resources_.inline_bytes());
    if (fits && opcode != IBV_WR_RDMA_READ) request.send_flags |= IBV_SEND_INLINE;
    request.wr.rdma.remote_addr = resources_.peer_slot(to);
    request.wr.rdma.rkey = resources_.peer_key();
    const int error = ibv_post_send(resources_.pair(which), &request, &refused);
    if (error != 0) throw host::system_failure("a work request was refused", error, "look at the kernel's log");
    ++outstanding_[which];
  }

  void post_receive(std::size_t which, std::size_t into) {
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(resources_.slot(into)), static_cast<std::uint32_t>(bytes_),
                  resources_.key()};
    ibv_recv_wr request{}, *refused = nullptr;
    request.wr_id = which | kReceiveMark;
    request.sg_list = &piece;
    request.num_sge = 1;
    const int error = ibv_post_recv(resources_.pair(which), &request, &refused);
    if (error != 0) throw host::system_failure("a receive was refused", error, "look at the kernel's log");
  }

  // Takes what is complete and calls `took` with the queue pair and whether it was a receive; false after stop.
  template <typename Took>
  bool reap(Took took) {
    std::array<ibv_wc, 32> done;
    const int count = resources_.completions(done.data(), static_cast<int>(done.size()));
    if (count < 0) throw host::Failure("the completion queue cannot be read", "look at the kernel's log");
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = done[static_cast<std::size_t>(i)];
      if (completion.status != IBV_WC_SUCCESS) {
        if (stages_.stopped()) return false;
        throw host::Failure(std::string("a work request failed: ") + verbs_library().wc_status_str(completion.status),
                            "look whether the other side still runs, and at --device and --gid-index on both");
      }
      const bool is_receive = (completion.wr_id & kReceiveMark) != 0;
      const auto which = static_cast<std::size_t>(completion.wr_id & ~kReceiveMark);
      if (!is_receive) --outstanding_[which];
      took(which, is_receive);
    }
    if (count == 0 && ++looks_ % kLooksPerYield == 0) sched_yield();
    return true;
  }

  bool any_outstanding() const {
    return std::any_of(outstanding_.begin(), outstanding_.end(), [](int requests) { return requests > 0; });
  }

  void add(std::size_t which) {
    auto& moved = moved_[which].value;
    moved.store(moved.load(std::memory_order_relaxed) + bytes_, std::memory_order_relaxed);
  }

  void request() {
    const ibv_wr_opcode opcode = setup_.work == Work::kWrite  ? IBV_WR_RDMA_WRITE
                                 : setup_.work == Work::kRead ? IBV_WR_RDMA_READ
                                                              : IBV_WR_SEND;
    for (std::size_t i = 0; i < resources_.pairs(); ++i) post(i, opcode, i, i);
    while (any_outstanding()) {
      if (stages_.stopped() || !reap([](std::size_t, bool) {})) return;
    }
    stages_.verified();
    if (!stages_.wait_for_go()) return;
    for (std::size_t i = 0; i < resources_.pairs(); ++i) {
      while (outstanding_[i] < setup_.depth) post(i, opcode, i, i);
    }
    while (!stages_.stopped()) {
      reap([&](std::size_t which, bool) {
        add(which);
        if (!stages_.stopped()) post(which, opcode, which, which);
      });
    }
    for (const double end = now_seconds() + kDrain; any_outstanding() && !stages_.abandoned() && now_seconds() < end;) {
      if (!reap([&](std::size_t which, bool) { add(which); })) return;
    }
  }

  void receive() {
    std::vector<bool> first(resources_.pairs(), true);
    std::size_t missing = resources_.pairs();
    for (std::size_t i = 0; i < resources_.pairs(); ++i) {
      for (int n = 0; n < setup_.depth; ++n) post_receive(i, i);
    }
    while (!stages_.stopped()) {
      reap([&](std::size_t which, bool) {
        if (first[which]) {
          first[which] = false;
          if (--missing == 0) stages_.verified();
        } else {
          add(which);
        }
        post_receive(which, which);
      });
    }
    // What the sender knows to be complete has arrived, but may not have been looked at.
    for (std::size_t before = 1; before != 0;) {
      before = 0;
      reap([&](std::size_t which, bool) { add(which), ++before; });
    }
  }

  void ping() {
    const bool by_write = setup_.work == Work::kAskWrite || setup_.work == Work::kAnswerWrite;
    if (!by_write) {
      for (int n = 0; n < setup_.depth; ++n) post_receive(0, 1);
    }
    for (std::uint64_t trip = 0; !stages_.stopped(); ++trip) {
      if (trip == kFirstRoundTrips) {
        stages_.verified();
        if (asks() && !stages_.wait_for_go()) return;
      }
      const auto number = static_cast<std::byte>(trip % 255 + 1);
      const std::uint64_t start = now_nanoseconds();
      if (asks() && !say(number, by_write)) return;
      if (!hear(number, by_write)) return;
      if (!asks() && !say(number, by_write)) return;
      if (asks() && trip >= kFirstRoundTrips) tally_.add(now_nanoseconds() - start);
    }
  }

  bool say(std::byte number, bool by_write) {
    while (outstanding_[0] >= setup_.depth) {
      if (stages_.stopped() || !reap_ping()) return false;
    }
    resources_.slot(0)[bytes_ - 1] = number;
    post(0, by_write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, 0, 1);
    return true;
  }

  bool hear(std::byte number, bool by_write) {
    if (by_write) {
      const volatile std::byte* const last = resources_.slot(1) + bytes_ - 1;
      for (unsigned looks = 1; *last != number; ++looks) {
        if (looks % kLooksPerYield != 0) continue;
        if (stages_.stopped()) return false;
        sched_yield();
      }
      std::atomic_thread_fence(std::memory_order_acquire);  // the message's other bytes are read after its last
      return reap_ping();
    }
    for (; heard_ == 0;) {
      if (stages_.stopped() || !reap_ping()) return false;
    }
    --heard_;
    return true;
  }

  bool reap_ping() {
    return reap([this](std::size_t which, bool is_receive) {
      if (!is_receive) return;
      ++heard_;
      post_receive(which, 1);
    });
  }

  VerbsSetup setup_;
  std::size_t bytes_;
  VerbsResources resources_;
  std::unique_ptr<Count[]> moved_;
  std::vector<int> outstanding_;
  std::size_t heard_ = 0;
  unsigned looks_ = 0;
  Tally tally_;
  Stages stages_;
  std::thread thread_;
};

VerbsEnd::VerbsEnd(const VerbsSetup& setup) : body_(std::make_unique<Body>(setup)) {}
VerbsEnd::~VerbsEnd() = default;
VerbsAddress VerbsEnd::address() const { return body_->resources().address(); }
void VerbsEnd::connect(const VerbsAddress& peer) { body_->resources().connect(peer); }
void VerbsEnd::begin() { body_->begin(); }
bool VerbsEnd::ready() const { return body_->stages().ready(); }
void VerbsEnd::check() const { body_->check(); }
void VerbsEnd::go() { body_->stages().go(); }
ByteCounters VerbsEnd::counters() const { return body_->counters(); }
RoundTrips VerbsEnd::take() {
  body_->stages().check();
  return body_->tally().take();
}
void VerbsEnd::stop() { body_->stages().stop(); }
bool VerbsEnd::done() const { return body_->stages().done(); }
std::map<int, std::size_t> VerbsEnd::nodes() const { return body_->resources().memory().nodes(); }

}  // namespace lanewise::network
#endif
