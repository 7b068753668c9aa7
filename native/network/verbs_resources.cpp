#include "network/verbs_resources.hpp"

#include <cstdint>

#ifdef LANEWISE_VERBS
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>

namespace lanewise::network {
namespace {

constexpr std::size_t kSlotsOfPing = 2;
constexpr int kMostReads = 16;
constexpr std::uint32_t kPsn = 0x1A2B3C;

std::size_t stride_of(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

ibv_context* open_device(const VerbsLibrary& ibv, const std::string& name) {
  int count = 0;
  ibv_device** const list = ibv.get_device_list(&count);
  ibv_context* opened = nullptr;
  for (int i = 0; list != nullptr && i < count; ++i) {
    if (name == ibv.get_device_name(list[i])) opened = ibv.open_device(list[i]);
  }
  if (list != nullptr) ibv.free_device_list(list);
  if (opened == nullptr) {
    throw host::Failure("RDMA device " + name + " cannot be opened", "ibv_devices lists those there are");
  }
  return opened;
}

template <typename T>
T* require(T* object, const char* what) {
  if (object == nullptr)
    throw host::system_failure(what, errno, "ulimit -l must allow the memory; try fewer queue pairs");
  return object;
}

void worked(int error, const char* what, const char* hint) {
  if (error != 0) throw host::system_failure(what, error, hint);
}

// Completions that may lie in the queue: a side of a stream posts sends or receives, one of a ping both.
int completion_entries(const VerbsSetup& setup) {
  return (setup.work >= Work::kAskWrite ? 2 : 1) * setup.pairs * setup.depth;
}

void check_limits(const VerbsSetup& setup, const ibv_device_attr& limits) {
  const auto check = [&setup](const std::string& what, int wanted, int most, const char* hint) {
    if (wanted <= most) return;
    throw host::Failure(
        setup.device + " has at most " + std::to_string(most) + " " + what + ", not " + std::to_string(wanted), hint);
  };
  check("queue pairs", setup.pairs, limits.max_qp, "fewer --connections");
  check("work requests on a queue pair", setup.depth, limits.max_qp_wr, "a smaller --depth");
  check("completions in a queue", completion_entries(setup), limits.max_cqe,
        "fewer --connections, or a smaller --depth");
}

std::string hexadecimal(const ibv_gid& gid) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t byte : gid.raw) {
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

ibv_gid gid_of(const std::string& text) {
  ibv_gid out{};
  std::ranges::copy(gid_bytes(text), out.raw);
  return out;
}

}  // namespace

VerbsResources::VerbsResources(const VerbsSetup& setup)
    : ibv_(verbs_library()),
      port_(setup.port),
      gid_index_(setup.gid_index),
      events_(setup.events),
      stride_(stride_of(setup.common.bytes)),
      memory_(stride_ * std::max(kSlotsOfPing, static_cast<std::size_t>(setup.pairs)), setup.common.node),
      psn_(kPsn) {
  context_ = {open_device(ibv_, setup.device), [this](ibv_context* object) { ibv_.close_device(object); }};
  const auto port = static_cast<std::uint8_t>(port_);
  worked(ibv_.query_port(context_.get(), port, &attributes_), "the port cannot be queried", "check the device's port");
  if (attributes_.state != IBV_PORT_ACTIVE) {
    throw host::Failure("port " + std::to_string(port_) + " of " + setup.device + " is not active",
                        "bring its link up, or choose another --device");
  }
  worked(ibv_.query_device(context_.get(), &limits_), "the device cannot be queried", "look at the kernel's log");
  check_limits(setup, limits_);
  // An index within the table but without an address reads as zeros.
  const ibv_gid empty{};
  if (ibv_.query_gid(context_.get(), port, gid_index_, &gid_) != 0 ||
      std::equal(std::begin(gid_.raw), std::end(gid_.raw), std::begin(empty.raw))) {
    throw host::Failure(setup.device + " has no GID " + std::to_string(gid_index_),
                        "show_gids, or /sys/class/infiniband/*/ports/1/gids, lists them: --gid-index");
  }
  domain_ = {require(ibv_.alloc_pd(context_.get()), "no protection domain"), [this](ibv_pd* p) { ibv_.dealloc_pd(p); }};
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  region_ = {require(ibv_.reg_mr(domain_.get(), memory_.data(), memory_.size(), access), "memory cannot be registered"),
             [this](ibv_mr* object) { ibv_.dereg_mr(object); }};
  if (events_) {
    channel_ = {require(ibv_.create_comp_channel(context_.get()), "no completion channel"),
                [this](ibv_comp_channel* object) { ibv_.destroy_comp_channel(object); }};
    fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  }
  make_pairs(setup);
}

void VerbsResources::make_pairs(const VerbsSetup& setup) {
  queue_ = {require(ibv_.create_cq(context_.get(), completion_entries(setup), nullptr, channel_.get(), 0),
                    "no completion queue"),
            [this](ibv_cq* object) { ibv_.destroy_cq(object); }};
  for (int i = 0; i < setup.pairs; ++i) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = queue_.get();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap.max_send_wr = attributes.cap.max_recv_wr = static_cast<std::uint32_t>(setup.depth);
    attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = static_cast<std::uint32_t>(setup.inline_bytes);
    ibv_qp* const pair = ibv_.create_qp(domain_.get(), &attributes);
    if (pair == nullptr && setup.inline_bytes > 0 && errno == EINVAL) {
      throw host::Failure(
          setup.device + " takes no " + std::to_string(setup.inline_bytes) + " bytes with a work request",
          "a smaller --inline, or none");
    }
    pairs_.emplace_back(require(pair, "no queue pair"), [this](ibv_qp* object) { ibv_.destroy_qp(object); });
    inline_bytes_ = std::min(setup.inline_bytes, static_cast<int>(attributes.cap.max_inline_data));
    ibv_qp_attr state{};
    state.qp_state = IBV_QPS_INIT;
    state.port_num = static_cast<std::uint8_t>(port_);
    state.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE;
    worked(ibv_.modify_qp(pairs_.back().get(), &state,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
           "a queue pair cannot be set up", "look at the kernel's log");
  }
}

VerbsAddress VerbsResources::address() const {
  VerbsAddress out;
  out.gid = hexadecimal(gid_);
  out.lid = attributes_.lid;
  out.mtu = attributes_.active_mtu;
  out.reads = std::min(kMostReads, limits_.max_qp_rd_atom);
  out.psn = psn_;
  out.memory = reinterpret_cast<std::uintptr_t>(memory_.data());
  out.key = region_->rkey;
  for (const auto& pair : pairs_) out.pairs.push_back(pair->qp_num);
  return out;
}

void VerbsResources::connect(const VerbsAddress& peer) {
  check_address(peer, pairs_.size());
  peer_ = peer;
  const auto reads = static_cast<std::uint8_t>(std::min({kMostReads, limits_.max_qp_rd_atom, peer.reads}));
  const char* const hint = "both sides must name GIDs of one network and kind: --device, --gid-index";
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    ibv_qp_attr to_receive{};
    to_receive.qp_state = IBV_QPS_RTR;
    to_receive.path_mtu = static_cast<ibv_mtu>(std::min<int>(attributes_.active_mtu, peer.mtu));
    to_receive.dest_qp_num = peer.pairs[i];
    to_receive.rq_psn = peer.psn;
    to_receive.max_dest_rd_atomic = reads;
    to_receive.min_rnr_timer = 12;  // 0.64 ms
    to_receive.ah_attr.port_num = static_cast<std::uint8_t>(port_);
    to_receive.ah_attr.dlid = static_cast<std::uint16_t>(peer.lid);
    if (attributes_.link_layer == IBV_LINK_LAYER_ETHERNET || peer.lid == 0) {
      to_receive.ah_attr.is_global = 1;
      to_receive.ah_attr.grh.dgid = gid_of(peer.gid);
      to_receive.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
      to_receive.ah_attr.grh.hop_limit = 64;
    }
    worked(ibv_.modify_qp(pair(i), &to_receive,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
           "a queue pair cannot be connected", hint);
    ibv_qp_attr to_send{};
    to_send.qp_state = IBV_QPS_RTS;
    to_send.timeout = 14;  // 67 ms, then again
    to_send.retry_cnt = 7;
    to_send.rnr_retry = 7;  // without end
    to_send.sq_psn = psn_;
    to_send.max_rd_atomic = reads;
    worked(ibv_.modify_qp(pair(i), &to_send,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                              IBV_QP_MAX_QP_RD_ATOMIC),
           "a queue pair cannot be connected", hint);
  }
}

int VerbsResources::completions(ibv_wc* out, int most) {
  int count = ibv_poll_cq(queue_.get(), most, out);
  if (count != 0 || !events_) return count;
  worked(ibv_req_notify_cq(queue_.get(), 0), "no completion events", "leave --events out");
  count = ibv_poll_cq(queue_.get(), most, out);  // what came before the request raises no event
  if (count != 0) return count;
  pollfd wait{channel_->fd, POLLIN, 0};
  if (poll(&wait, 1, 100) > 0) {
    ibv_cq* which = nullptr;
    void* ours = nullptr;
    if (ibv_.get_cq_event(channel_.get(), &which, &ours) == 0) ibv_.ack_cq_events(which, 1);
  }
  return ibv_poll_cq(queue_.get(), most, out);
}

}  // namespace lanewise::network
#endif
