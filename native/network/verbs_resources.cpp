#include "network/verbs_resources.hpp"

#ifdef LANEWISE_VERBS
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "host/failure.hpp"

namespace lanewise::network {
namespace {

constexpr std::size_t kSlotsOfPing = 2;

std::size_t stride_of(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Completions that may lie in the queue: a side of a stream posts sends or receives, one of a ping both.
int completion_entries(const VerbsSetup& setup) {
  return (setup.work >= Work::kAskWrite ? 2 : 1) * setup.pairs * setup.depth;
}

void check_limits(const VerbsSetup& setup, const ibv_device_attr& limits) {
  const auto check = [&setup](const std::string& what, int wanted, int most, const char* hint) {
    if (wanted <= most) return;
    throw host::Failure(
        setup.port.device + " has at most " + std::to_string(most) + " " + what + ", not " + std::to_string(wanted),
        hint);
  };
  check("queue pairs", setup.pairs, limits.max_qp, "fewer --connections");
  check("work requests on a queue pair", setup.depth, limits.max_qp_wr, "a smaller --depth");
  check("completions in a queue", completion_entries(setup), limits.max_cqe,
        "fewer --connections, or a smaller --depth");
}

}  // namespace

VerbsResources::VerbsResources(const VerbsSetup& setup)
    : device_(setup.port),
      stride_(stride_of(setup.common.bytes)),
      memory_(stride_ * std::max({kSlotsOfPing, static_cast<std::size_t>(setup.pairs), setup.slots}),
              setup.common.node) {
  check_limits(setup, device_.limits());
  region_ = device_.context().region(memory_.data(), memory_.size(),
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  if (setup.events) channel_ = device_.completion_channel();
  queue_ = device_.completion_queue(completion_entries(setup), channel_.get());
  make_pairs(setup);
}

void VerbsResources::make_pairs(const VerbsSetup& setup) {
  for (int i = 0; i < setup.pairs; ++i) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = queue_.get();
    attributes.cap.max_send_wr = attributes.cap.max_recv_wr = static_cast<std::uint32_t>(setup.depth);
    attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = static_cast<std::uint32_t>(setup.inline_bytes);
    VerbsOwned<ibv_qp> pair = device_.queue_pair(attributes);
    if (!pair && setup.inline_bytes > 0 && errno == EINVAL) {
      throw host::Failure(
          device_.name() + " takes no " + std::to_string(setup.inline_bytes) + " bytes with a work request",
          "a smaller --inline, or none");
    }
    if (!pair) check_verbs(errno, "no queue pair", "ulimit -l must allow the memory; try fewer queue pairs");
    pairs_.push_back(std::move(pair));
    inline_bytes_ = std::min(setup.inline_bytes, static_cast<int>(attributes.cap.max_inline_data));
  }
}

VerbsAddress VerbsResources::address() const {
  VerbsAddress out = device_.address();
  out.memory = reinterpret_cast<std::uintptr_t>(memory_.data());
  out.key = region_->rkey;
  for (const auto& pair : pairs_) out.pairs.push_back(pair->qp_num);
  return out;
}

void VerbsResources::connect(const VerbsAddress& peer) {
  check_address(peer, pairs_.size());
  peer_ = peer;
  for (std::size_t i = 0; i < pairs_.size(); ++i) device_.connect(pair(i), peer, peer.pairs[i]);
}

int VerbsResources::completions(ibv_wc* out, int most) {
  int count = ibv_poll_cq(queue_.get(), most, out);
  if (count != 0 || !channel_) return count;
  check_verbs(ibv_req_notify_cq(queue_.get(), 0), "no completion events", "leave --events out");
  count = ibv_poll_cq(queue_.get(), most, out);  // what came before the request raises no event
  if (count != 0) return count;
  pollfd wait{channel_->fd, POLLIN, 0};
  if (poll(&wait, 1, 100) > 0) {
    ibv_cq* which = nullptr;
    void* ours = nullptr;
    if (device_.library().get_cq_event(channel_.get(), &which, &ours) == 0) device_.library().ack_cq_events(which, 1);
  }
  return ibv_poll_cq(queue_.get(), most, out);
}

}  // namespace lanewise::network
#endif
