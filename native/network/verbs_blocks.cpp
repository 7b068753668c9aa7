#include "network/verbs_blocks.hpp"

#ifndef LANEWISE_VERBS

namespace lanewise::network {

class VerbsBlocks::Body {};
// The same as a stream: it says what is missing.
VerbsBlocks::VerbsBlocks(const VerbsSetup& setup, std::size_t, std::size_t) { const VerbsEnd missing(setup); }
VerbsBlocks::~VerbsBlocks() = default;
VerbsAddress VerbsBlocks::address() const { return {}; }
void VerbsBlocks::connect(const VerbsAddress&) {}
BlockTimes VerbsBlocks::transfer() { return {}; }
void VerbsBlocks::check() const {}
std::map<int, std::size_t> VerbsBlocks::nodes() const { return {}; }
}  // namespace lanewise::network

#else
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "network/verbs_resources.hpp"

namespace lanewise::network {
namespace {

constexpr double kStandstill = 10.0;         // s without a completion until a transfer is given up
constexpr unsigned kLooksPerTurn = 1 << 14;  // looking without pause, it lets others run now and then

VerbsSetup one_pair(VerbsSetup setup, std::size_t count) {
  setup.pairs = 1;
  setup.work = setup.is_source ? Work::kWrite : Work::kNothing;
  setup.slots = count;
  return setup;
}

}  // namespace

class VerbsBlocks::Body {
 public:
  Body(const VerbsSetup& setup, std::size_t count, std::size_t list)
      : setup_(one_pair(setup, count)),
        bytes_(setup.common.bytes),
        list_(std::clamp<std::size_t>(list, 1, static_cast<std::size_t>(setup.depth))),
        resources_(setup_),
        places_(block_places(count, setup.is_source)) {
    std::memset(resources_.memory().data(), 0, resources_.memory().size());
    if (setup.is_source) fill_blocks(resources_.slot(0), places_, bytes_, stride(), setup.common.seed);
  }

  VerbsResources& resources() { return resources_; }

  // The lists are built once, as a transfer engine prepares them.
  void connect(const VerbsAddress& peer) {
    resources_.connect(peer);
    if (!setup_.is_source) return;
    const std::vector<std::uint32_t> there = block_places(places_.size(), false);
    pieces_.assign(places_.size(), {});
    requests_.assign(places_.size(), {});
    for (std::size_t i = 0; i < places_.size(); ++i) {
      pieces_[i] = {reinterpret_cast<std::uintptr_t>(resources_.slot(places_[i])), static_cast<std::uint32_t>(bytes_),
                    resources_.key()};
      ibv_send_wr& request = requests_[i];
      const bool last = (i + 1) % list_ == 0 || i + 1 == places_.size();
      request.wr_id = i % list_ + 1;  // of the last one: how many its completion stands for
      request.next = last ? nullptr : &requests_[i + 1];
      request.sg_list = &pieces_[i];
      request.num_sge = 1;
      request.opcode = IBV_WR_RDMA_WRITE;
      request.send_flags = last ? IBV_SEND_SIGNALED : 0;
      request.wr.rdma.remote_addr = resources_.peer_slot(there[i]);
      request.wr.rdma.rkey = resources_.peer_key();
    }
  }

  BlockTimes transfer() {
    BlockTimes times;
    const double begun = now_seconds();
    double moved = begun;  // when something last ended
    std::size_t posted = 0, ended = 0;
    for (unsigned looks = 1; ended < requests_.size(); ++looks) {
      const double before = now_seconds();
      const std::size_t next = std::min(list_, requests_.size() - posted);
      if (next > 0 && posted - ended + next <= static_cast<std::size_t>(setup_.depth)) {
        post(posted);
        posted += next;
        times.posting += now_seconds() - before;
        continue;
      }
      const std::size_t complete = reap();
      ended += complete;
      const double now = now_seconds();
      if (complete > 0) {
        times.completing += now - before;
        moved = now;
      } else if (now - moved > kStandstill) {
        throw host::Failure("no work request ended in 10 s", "look whether the other side still runs");
      }
      if (looks % kLooksPerTurn == 0) sched_yield();
    }
    times.seconds = now_seconds() - begun;
    return times;
  }

  void check() const {
    if (!setup_.is_source) check_blocks(resources_.slot(0), places_, bytes_, stride(), setup_.common.seed);
  }

 private:
  std::size_t stride() const { return static_cast<std::size_t>(resources_.slot(1) - resources_.slot(0)); }

  void post(std::size_t first) {
    ibv_send_wr* refused = nullptr;
    const int error = ibv_post_send(resources_.pair(0), &requests_[first], &refused);
    if (error != 0) throw host::system_failure("a work request was refused", error, "a smaller --depth");
  }

  // How many blocks have ended.
  std::size_t reap() {
    std::array<ibv_wc, 32> done;
    const int count = resources_.completions(done.data(), static_cast<int>(done.size()));
    if (count < 0) throw host::Failure("the completion queue cannot be read", "look at the kernel's log");
    std::size_t blocks = 0;
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = done[static_cast<std::size_t>(i)];
      if (completion.status != IBV_WC_SUCCESS) {
        throw host::Failure(std::string("a work request failed: ") + verbs_library().wc_status_str(completion.status),
                            "look whether the other side still runs, and at --device and --gid-index on both");
      }
      blocks += completion.wr_id;
    }
    return blocks;
  }

  VerbsSetup setup_;
  std::size_t bytes_, list_;
  VerbsResources resources_;
  std::vector<std::uint32_t> places_;
  std::vector<ibv_sge> pieces_;
  std::vector<ibv_send_wr> requests_;
};

VerbsBlocks::VerbsBlocks(const VerbsSetup& setup, std::size_t count, std::size_t list)
    : body_(std::make_unique<Body>(setup, count, list)) {}
VerbsBlocks::~VerbsBlocks() = default;
VerbsAddress VerbsBlocks::address() const { return body_->resources().address(); }
void VerbsBlocks::connect(const VerbsAddress& peer) { body_->connect(peer); }
BlockTimes VerbsBlocks::transfer() { return body_->transfer(); }
void VerbsBlocks::check() const { body_->check(); }
std::map<int, std::size_t> VerbsBlocks::nodes() const { return body_->resources().memory().nodes(); }

}  // namespace lanewise::network
#endif
