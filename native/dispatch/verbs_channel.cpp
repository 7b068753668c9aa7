#include "dispatch/verbs_channel.hpp"

#include "host/failure.hpp"

#ifndef LANEWISE_VERBS

namespace lanewise::dispatch {

std::unique_ptr<VerbsChannel> make_verbs_channel(VerbsChannelSetup) {
  throw host::Failure("this build of Lanewise has no verbs", "install libibverbs-dev (rdma-core), then Lanewise again");
}

}  // namespace lanewise::dispatch

#else
#include <arpa/inet.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "network/verbs_device.hpp"

namespace lanewise::dispatch {

namespace {

using network::check_verbs;
using network::VerbsOwned;

constexpr std::uint32_t kInline = 64;      // bytes handed over with a request, where the device takes them
constexpr std::uint32_t kLeastDepth = 64;  // of the send queue
constexpr std::size_t kRingPieces = 2;     // writes of a group's messages: two where the ring wraps
constexpr int kWrittenByPeer = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
constexpr unsigned kAcknowledged = 64;  // events at once, as each time takes a lock

host::Failure no_completions() { return {"a completion queue cannot be read", "look at the kernel's log"}; }

host::Failure closed() { return {"the connection was closed", "look at what the other side says"}; }

class RcChannel : public VerbsChannel {
 public:
  explicit RcChannel(VerbsChannelSetup setup);
  ~RcChannel() override;

  VerbsChannelAddress address() const override;
  void connect(const VerbsChannelAddress& peer) override;
  void register_source(std::span<const std::byte> memory) override;
  void post(const Message& message, const std::byte* data) override;
  void ring() override;
  std::size_t receive(std::span<Message> into, std::int64_t patience) override;
  void close() noexcept override;
  const Slots& slots() const override { return setup_.mine; }

 private:
  VerbsOwned<ibv_mr> register_slots() const;
  void make_pair();
  void add_write(const void* from, std::size_t bytes, const ibv_mr* region, std::uint64_t to, std::uint32_t key);
  void add_messages(std::uint32_t first, std::uint32_t count);
  void send_group();
  bool take_sent();
  void wait_for_sent();
  bool take_arrivals();
  void announce(const ibv_wc& completion);
  void post_receives(std::uint32_t count);
  bool wait(std::int64_t patience);
  host::Failure failed(ibv_wc_status status);

  // In the order in which the later ones need the earlier ones; freed the other way round.
  VerbsChannelSetup setup_;
  network::VerbsDevice device_;
  const network::VerbsLibrary& ibv_ = device_.library();
  std::uint32_t capacity_;  // messages in a ring
  host::Memory rings_;
  Message* in_;   // the peer writes here
  Message* out_;  // what the NIC reads
  VerbsOwned<ibv_mr> slots_region_, in_region_, out_region_;
  std::shared_ptr<ibv_mr> source_region_;  // of a Frontend's library: that of all its connections over this device
  VerbsOwned<ibv_comp_channel> sent_events_, arrival_events_;
  VerbsOwned<ibv_cq> sent_, arrivals_;
  VerbsOwned<ibv_qp> pair_;
  VerbsChannelAddress peer_;
  int waker_;
  std::atomic<bool> closed_ = false;

  // Who posts. Counts are modulo 2^32.
  std::uint32_t depth_ = 0;         // work requests that the send queue holds
  std::uint32_t inline_bytes_ = 0;  // of a request at most
  std::size_t group_ = 0;           // work requests of a group at most
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> pieces_;
  std::uint32_t posted_ = 0, rung_ = 0, sent_messages_ = 0;  // messages: in out_, of groups, of complete groups
  std::uint32_t requested_ = 0, sent_requests_ = 0;          // work requests: of groups, of complete groups

  // Who receives.
  std::uint32_t receives_ = 0;                  // that wait for a group
  std::uint32_t announced_ = 0, consumed_ = 0;  // messages
  bool armed_ = false;                          // the next group raises an event
  unsigned unacknowledged_ = 0;
};

RcChannel::RcChannel(VerbsChannelSetup setup)
    : setup_(std::move(setup)),
      device_(setup_.port),
      capacity_(ring_capacity(setup_.mine.count)),
      rings_(2 * capacity_ * sizeof(Message), setup_.node),
      in_(reinterpret_cast<Message*>(rings_.data())),
      out_(in_ + capacity_),
      slots_region_(register_slots()),
      in_region_(device_.context().region(in_, capacity_ * sizeof(Message), kWrittenByPeer)),
      out_region_(device_.context().region(out_, capacity_ * sizeof(Message), IBV_ACCESS_LOCAL_WRITE)),
      sent_events_(device_.completion_channel()),
      arrival_events_(device_.completion_channel()),
      waker_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (waker_ < 0) throw host::system_failure("eventfd", errno, "ulimit -n raises the number of open files");
  try {
    make_pair();
    post_receives(receives_);
  } catch (...) {
    ::close(waker_);
    throw;
  }
}

RcChannel::~RcChannel() {
  if (unacknowledged_ > 0) ibv_.ack_cq_events(arrivals_.get(), unacknowledged_);  // else its queue waits for them
  ::close(waker_);
}

VerbsOwned<ibv_mr> RcChannel::register_slots() const {
  const Slots& mine = setup_.mine;
  if (!setup_.dma_buf) return device_.context().region(mine.data, mine.extent(), kWrittenByPeer);
  return device_.context().dma_buf_region(*setup_.dma_buf, setup_.dma_buf_offset,
                                          reinterpret_cast<std::uintptr_t>(mine.data), mine.extent(), kWrittenByPeer);
}

void RcChannel::make_pair() {
  const auto most = static_cast<std::uint32_t>(std::min(device_.limits().max_qp_wr, device_.limits().max_cqe));
  const std::uint32_t wanted = std::min(2 * setup_.mine.count + kLeastDepth, most);  // data and message of every slot
  receives_ = std::min(capacity_, most);
  sent_ = device_.completion_queue(static_cast<int>(wanted), sent_events_.get());
  arrivals_ = device_.completion_queue(static_cast<int>(receives_), arrival_events_.get());
  // A device's limit is that of its smallest requests: with inline data a queue may have to be shorter.
  for (const std::uint32_t inline_bytes : {kInline, 0U}) {
    for (depth_ = wanted; depth_ >= std::min(kLeastDepth, wanted); depth_ /= 2) {
      ibv_qp_init_attr attributes{};
      attributes.send_cq = sent_.get();
      attributes.recv_cq = arrivals_.get();
      attributes.cap.max_send_wr = depth_;
      attributes.cap.max_recv_wr = receives_;
      attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
      attributes.cap.max_inline_data = inline_bytes;
      pair_ = device_.queue_pair(attributes);
      if (!pair_) continue;
      inline_bytes_ = attributes.cap.max_inline_data;
      group_ = depth_ / 2;  // the next one is made while one is on its way
      requests_.reserve(group_);
      pieces_.reserve(group_);
      return;
    }
  }
  throw host::system_failure("no queue pair", errno, "ulimit -l must allow the memory; try fewer connections");
}

VerbsChannelAddress RcChannel::address() const {
  VerbsChannelAddress out{
      .queue_pair = device_.address(), .ring = reinterpret_cast<std::uintptr_t>(in_), .ring_key = in_region_->rkey};
  out.queue_pair.memory = reinterpret_cast<std::uintptr_t>(setup_.mine.data);
  out.queue_pair.key = slots_region_->rkey;
  out.queue_pair.pairs = {pair_->qp_num};
  return out;
}

void RcChannel::connect(const VerbsChannelAddress& peer) {
  network::check_address(peer.queue_pair, 1);
  peer_ = peer;
  device_.connect(pair_.get(), peer.queue_pair, peer.queue_pair.pairs.front());
}

void RcChannel::register_source(std::span<const std::byte> memory) {
  // As if it were to be written: the owner does so, and the pages of both must stay the same.
  source_region_ = device_.context().shared_region(memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE);
}

void RcChannel::add_write(const void* from, std::size_t bytes, const ibv_mr* region, std::uint64_t to,
                          std::uint32_t key) {
  const bool fits = bytes <= inline_bytes_;
  pieces_.push_back({reinterpret_cast<std::uintptr_t>(from), static_cast<std::uint32_t>(bytes),
                     fits || region == nullptr ? 0 : region->lkey});
  ibv_send_wr& request = requests_.emplace_back();
  request.sg_list = &pieces_.back();
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  if (fits) request.send_flags = IBV_SEND_INLINE;
  request.wr.rdma.remote_addr = to;
  request.wr.rdma.rkey = key;
  if (requests_.size() > 1) requests_[requests_.size() - 2].next = &request;
}

void RcChannel::post(const Message& message, const std::byte* data) {
  if (closed_.load(std::memory_order_relaxed)) throw closed();
  if (!setup_.peers.holds(message)) throw host::Failure("a message is larger than its slot", "please report this");
  if (requests_.size() + kRingPieces == group_ || posted_ - sent_messages_ == capacity_) ring();
  while (posted_ - sent_messages_ == capacity_) wait_for_sent();
  if (message.bytes > 0) {
    const network::VerbsAddress& slots = peer_.queue_pair;
    add_write(data, message.bytes, source_region_.get(), slots.memory + message.slot * setup_.peers.stride, slots.key);
  }
  out_[posted_ & (capacity_ - 1)] = message;
  ++posted_;
  if (is_transaction(message.kind)) ChannelCounters::add(counters_.posted, 1);
  ChannelCounters::add(counters_.bytes_out, message.bytes);
}

// The messages of out_ from `first` on, which lie in one piece.
void RcChannel::add_messages(std::uint32_t first, std::uint32_t count) {
  add_write(out_ + first, count * sizeof(Message), out_region_.get(), peer_.ring + first * sizeof(Message),
            peer_.ring_key);
}

void RcChannel::ring() {
  if (closed_.load(std::memory_order_relaxed)) throw closed();
  if (posted_ == rung_) return;
  const std::uint32_t first = rung_ & (capacity_ - 1), count = posted_ - rung_;
  const std::uint32_t in_one_piece = std::min(count, capacity_ - first);
  add_messages(first, in_one_piece);
  if (count > in_one_piece) add_messages(0, count - in_one_piece);
  ibv_send_wr& last = requests_.back();
  last.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  last.imm_data = htonl(posted_);
  last.send_flags |= IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
  ChannelCounters::add(counters_.doorbells, 1);  // before the peer can have seen it
  try {
    send_group();
  } catch (...) {
    close();  // half a group is of no use
    throw;
  }
  rung_ = posted_;
  requests_.clear();
  pieces_.clear();
}

void RcChannel::send_group() {
  requested_ += static_cast<std::uint32_t>(requests_.size());
  requests_.back().wr_id = std::uint64_t{requested_} << 32 | posted_;
  while (requested_ - sent_requests_ > depth_) wait_for_sent();
  ibv_send_wr* refused = nullptr;
  check_verbs(ibv_post_send(pair_.get(), requests_.data(), &refused), "a work request was refused",
              "look at the kernel's log");
}

// Whether groups have been sent; their requests and messages make room for others.
bool RcChannel::take_sent() {
  std::array<ibv_wc, 32> done;
  const int count = ibv_poll_cq(sent_.get(), done.size(), done.data());
  if (count < 0) throw no_completions();
  for (int i = 0; i < count; ++i) {
    const ibv_wc& completion = done[static_cast<std::size_t>(i)];
    if (completion.status != IBV_WC_SUCCESS) throw failed(completion.status);
    sent_requests_ = static_cast<std::uint32_t>(completion.wr_id >> 32);
    sent_messages_ = static_cast<std::uint32_t>(completion.wr_id);
  }
  return count > 0;
}

// The peer's NIC has received them, which takes a round trip, or the connection breaks.
void RcChannel::wait_for_sent() {
  if (take_sent()) return;
  check_verbs(ibv_req_notify_cq(sent_.get(), 0), "no completion events", "look at the kernel's log");
  if (take_sent()) return;  // before the request, so it raises no event
  std::array<pollfd, 2> waits{{{sent_events_->fd, POLLIN, 0}, {waker_, POLLIN, 0}}};
  poll(waits.data(), waits.size(), -1);
  ibv_cq* queue = nullptr;
  void* ours = nullptr;
  if (ibv_.get_cq_event(sent_events_.get(), &queue, &ours) == 0) ibv_.ack_cq_events(queue, 1);
  if (closed_.load()) throw closed();
}

void RcChannel::post_receives(std::uint32_t count) {
  std::array<ibv_recv_wr, 64> requests{};
  while (count > 0) {
    const std::size_t now = std::min<std::size_t>(count, requests.size());
    for (std::size_t i = 0; i < now; ++i) requests[i].next = i + 1 < now ? &requests[i + 1] : nullptr;
    ibv_recv_wr* refused = nullptr;
    check_verbs(ibv_post_recv(pair_.get(), requests.data(), &refused), "a receive was refused",
                "look at the kernel's log");
    count -= static_cast<std::uint32_t>(now);
  }
}

// Takes what the completion of a group says.
void RcChannel::announce(const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) throw failed(completion.status);
  const std::uint32_t more = ntohl(completion.imm_data) - announced_;
  const std::uint32_t room = capacity_ - (announced_ - consumed_);
  if (completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM || more == 0 || more > room) throw senseless();
  announced_ += more;
}

// Whether there are messages.
bool RcChannel::take_arrivals() {
  std::array<ibv_wc, 32> done;
  int count = 0;
  do {
    count = ibv_poll_cq(arrivals_.get(), done.size(), done.data());
    if (closed_.load()) return false;
    if (count < 0) throw no_completions();
    for (int i = 0; i < count; ++i) announce(done[static_cast<std::size_t>(i)]);
    post_receives(static_cast<std::uint32_t>(count));
  } while (count == static_cast<int>(done.size()));
  return announced_ != consumed_;
}

// Whether there are messages, after at most `patience` ns.
bool RcChannel::wait(std::int64_t patience) {
  if (closed_.load()) return false;
  if (!std::exchange(armed_, true)) {
    check_verbs(ibv_req_notify_cq(arrivals_.get(), 1), "no completion events", "look at the kernel's log");
    if (take_arrivals()) return true;  // before the request, so they raise no event
  }
  std::array<pollfd, 2> waits{{{arrival_events_->fd, POLLIN, 0}, {waker_, POLLIN, 0}}};
  const timespec limit{patience / 1'000'000'000, patience % 1'000'000'000};
  if (ppoll(waits.data(), waits.size(), &limit, nullptr) <= 0) return false;
  ibv_cq* queue = nullptr;
  void* ours = nullptr;
  if (ibv_.get_cq_event(arrival_events_.get(), &queue, &ours) == 0) {
    armed_ = false;
    ChannelCounters::add(counters_.wakeups, 1);
    if (++unacknowledged_ == kAcknowledged) ibv_.ack_cq_events(queue, std::exchange(unacknowledged_, 0));
  }
  return take_arrivals();
}

std::size_t RcChannel::receive(std::span<Message> into, std::int64_t patience) {
  if (announced_ == consumed_ && !take_arrivals() && !wait(patience)) return 0;
  const std::size_t taken = std::min<std::size_t>(announced_ - consumed_, into.size());
  take(into.first(taken), {in_, capacity_}, consumed_);
  consumed_ += static_cast<std::uint32_t>(taken);
  return taken;
}

// A queue pair that fails flushes all its requests; what made it fail is told by the first that it could not send.
host::Failure RcChannel::failed(ibv_wc_status status) {
  ibv_wc sent{};
  while (status == IBV_WC_WR_FLUSH_ERR && ibv_poll_cq(sent_.get(), 1, &sent) == 1) {
    if (sent.status != IBV_WC_SUCCESS) status = sent.status;
  }
  return {std::string("an RDMA connection failed: ") + ibv_.wc_status_str(status),
          "look whether the other side still runs and what it says"};
}

void RcChannel::close() noexcept {
  if (closed_.exchange(true)) return;
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_ERR;  // whatever is under way ends, and the peer's writes fail
  ibv_.modify_qp(pair_.get(), &state, IBV_QP_STATE);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(waker_, &one, sizeof one);
}

}  // namespace

std::unique_ptr<VerbsChannel> make_verbs_channel(VerbsChannelSetup setup) {
  return std::make_unique<RcChannel>(std::move(setup));
}

}  // namespace lanewise::dispatch
#endif
