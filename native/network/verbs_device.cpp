#include "network/verbs_device.hpp"

#ifdef LANEWISE_VERBS
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>
#include <utility>

#include "host/failure.hpp"

namespace lanewise::network {
namespace {

constexpr int kMostReads = 16;
constexpr std::uint32_t kPsn = 0x1A2B3C;

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

VerbsDevice::VerbsDevice(VerbsPort port) : port_(std::move(port)), context_(VerbsContext::of(port_.device)) {
  const auto number = static_cast<std::uint8_t>(port_.port);
  check_verbs(ibv_.query_port(context_->handle(), number, &attributes_), "the port cannot be queried",
              "check the device's port");
  if (attributes_.state != IBV_PORT_ACTIVE) {
    throw host::Failure("port " + std::to_string(port_.port) + " of " + port_.device + " is not active",
                        "bring its link up, or choose another --device");
  }
  check_verbs(ibv_.query_device(context_->handle(), &limits_), "the device cannot be queried",
              "look at the kernel's log");
  // An index within the table but without an address reads as zeros.
  const ibv_gid empty{};
  if (ibv_.query_gid(context_->handle(), number, port_.gid_index, &gid_) != 0 ||
      std::equal(std::begin(gid_.raw), std::end(gid_.raw), std::begin(empty.raw))) {
    throw host::Failure(port_.device + " has no GID " + std::to_string(port_.gid_index),
                        "show_gids, or /sys/class/infiniband/*/ports/1/gids, lists them: --gid-index");
  }
}

VerbsOwned<ibv_comp_channel> VerbsDevice::completion_channel() const {
  VerbsOwned<ibv_comp_channel> channel{required(ibv_.create_comp_channel(context_->handle()), "no completion channel"),
                                       [&ibv = ibv_](ibv_comp_channel* object) { ibv.destroy_comp_channel(object); }};
  fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  return channel;
}

VerbsOwned<ibv_cq> VerbsDevice::completion_queue(int entries, ibv_comp_channel* channel) const {
  return {required(ibv_.create_cq(context_->handle(), entries, nullptr, channel, 0), "no completion queue"),
          [&ibv = ibv_](ibv_cq* object) { ibv.destroy_cq(object); }};
}

VerbsOwned<ibv_qp> VerbsDevice::queue_pair(ibv_qp_init_attr& attributes) const {
  attributes.qp_type = IBV_QPT_RC;
  VerbsOwned<ibv_qp> pair{ibv_.create_qp(context_->domain(), &attributes),
                          [&ibv = ibv_](ibv_qp* object) { ibv.destroy_qp(object); }};
  if (!pair) return pair;
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_INIT;
  state.port_num = static_cast<std::uint8_t>(port_.port);
  state.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE;
  check_verbs(ibv_.modify_qp(pair.get(), &state, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              "a queue pair cannot be set up", "look at the kernel's log");
  return pair;
}

VerbsAddress VerbsDevice::address() const {
  VerbsAddress out;
  out.gid = hexadecimal(gid_);
  out.lid = attributes_.lid;
  out.mtu = attributes_.active_mtu;
  out.reads = std::min(kMostReads, limits_.max_qp_rd_atom);
  out.psn = kPsn;
  return out;
}

void VerbsDevice::connect(ibv_qp* pair, const VerbsAddress& peer, std::uint32_t number) const {
  const auto reads = static_cast<std::uint8_t>(std::min({kMostReads, limits_.max_qp_rd_atom, peer.reads}));
  const char* const hint = "both sides must name GIDs of one network and kind: --device, --gid-index";
  ibv_qp_attr to_receive{};
  to_receive.qp_state = IBV_QPS_RTR;
  to_receive.path_mtu = static_cast<ibv_mtu>(std::min<int>(attributes_.active_mtu, peer.mtu));
  to_receive.dest_qp_num = number;
  to_receive.rq_psn = peer.psn;
  to_receive.max_dest_rd_atomic = reads;
  to_receive.min_rnr_timer = 12;  // 0.64 ms
  to_receive.ah_attr.port_num = static_cast<std::uint8_t>(port_.port);
  to_receive.ah_attr.dlid = static_cast<std::uint16_t>(peer.lid);
  if (attributes_.link_layer == IBV_LINK_LAYER_ETHERNET || peer.lid == 0) {
    to_receive.ah_attr.is_global = 1;
    to_receive.ah_attr.grh.dgid = gid_of(peer.gid);
    to_receive.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(port_.gid_index);
    to_receive.ah_attr.grh.hop_limit = 64;
  }
  check_verbs(ibv_.modify_qp(pair, &to_receive,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              "a queue pair cannot be connected", hint);
  ibv_qp_attr to_send{};
  to_send.qp_state = IBV_QPS_RTS;
  to_send.timeout = 14;  // 67 ms, then again
  to_send.retry_cnt = 7;
  to_send.rnr_retry = 7;  // without end
  to_send.sq_psn = kPsn;
  to_send.max_rd_atomic = reads;
  check_verbs(ibv_.modify_qp(pair, &to_send,
                             IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                 IBV_QP_MAX_QP_RD_ATOMIC),
              "a queue pair cannot be connected", hint);
}

}  // namespace lanewise::network
#endif
