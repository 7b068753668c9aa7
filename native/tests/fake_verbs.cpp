#include <arpa/inet.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "fake_verbs_world.hpp"

namespace fake_verbs {

World& world() {
  static World* const all = new World;  // never destroyed: threads may outlive main
  return *all;
}

namespace {

void complete(ibv_cq* queue, const Completion& added, bool solicited) {
  auto& into = *static_cast<Queue*>(queue);
  into.done.push_back(added);
  must(into.done.size() <= static_cast<std::size_t>(into.cqe), "a completion queue overran");
  const bool bad = added.wc.status != IBV_WC_SUCCESS;
  if (into.armed == Armed::kNo || (into.armed == Armed::kSolicited && !solicited && !bad)) return;
  into.armed = Armed::kNo;
  ++world().total.events;
  static_cast<Events*>(into.channel)->raised.push_back(queue);
  const std::uint64_t one = 1;
  must(write(into.channel->fd, &one, sizeof one) == sizeof one, "an event was lost");
}

ibv_wc completion(std::uint64_t id, ibv_wc_status status, ibv_wc_opcode opcode) {
  ibv_wc wc{};
  wc.wr_id = id;
  wc.status = status;
  wc.opcode = opcode;
  return wc;
}

}  // namespace

void enter_error(Pair& pair) {
  pair.state = IBV_QPS_ERR;
  for (; pair.receives > 0; --pair.receives) {
    complete(pair.recv_cq, {completion(0, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV), &pair, 0}, false);
  }
}

namespace {

void deliver(Pair& to, std::uint32_t immediate, ibv_wc_opcode opcode) {
  --to.receives;
  ibv_wc wc = completion(0, IBV_WC_SUCCESS, opcode);
  wc.imm_data = immediate;
  complete(to.recv_cq, {wc, &to, 0}, true);
}

Region* region_of(std::uint32_t key) { return world().regions.contains(key) ? world().regions[key] : nullptr; }

ibv_wc_status write_remote(Pair& pair, const ibv_send_wr& request) {
  Pair* const peer = world().pairs.contains(pair.peer) ? world().pairs[pair.peer] : nullptr;
  if (world().failing) return *std::exchange(world().failing, std::nullopt);
  if (peer == nullptr || (peer->state != IBV_QPS_RTR && peer->state != IBV_QPS_RTS)) return IBV_WC_RETRY_EXC_ERR;
  const ibv_sge& piece = *request.sg_list;
  Region* const from = region_of(piece.lkey);
  const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
  if (!is_inline && (from == nullptr || from->pd != pair.pd || !from->holds(piece.addr, piece.length))) {
    return IBV_WC_LOC_PROT_ERR;
  }
  Region* const to = region_of(request.wr.rdma.rkey);
  if (to == nullptr || to->pd != peer->pd || (to->access & IBV_ACCESS_REMOTE_WRITE) == 0 ||
      !to->holds(request.wr.rdma.remote_addr, piece.length)) {
    enter_error(*peer);
    return IBV_WC_REM_ACCESS_ERR;
  }
  std::memcpy(to->memory(request.wr.rdma.remote_addr), reinterpret_cast<const void*>(piece.addr), piece.length);
  world().total.inlined += is_inline ? 1 : 0;
  if (request.opcode != IBV_WR_RDMA_WRITE_WITH_IMM) return IBV_WC_SUCCESS;
  must((request.send_flags & IBV_SEND_SOLICITED) != 0, "an immediate that wakes nobody");
  if (peer->receives > 0) {
    deliver(*peer, request.imm_data, IBV_WC_RECV_RDMA_WITH_IMM);
  } else {
    peer->waiting.push_back(request.imm_data);
  }
  return IBV_WC_SUCCESS;
}

}  // namespace

int post_send(ibv_qp* which, ibv_send_wr* request, ibv_send_wr** refused) {
  const std::scoped_lock lock(world().mutex);
  auto& pair = *static_cast<Pair*>(which);
  ++world().total.posts;
  for (; request != nullptr; request = request->next) {
    *refused = request;
    if (pair.state != IBV_QPS_RTS && pair.state != IBV_QPS_ERR) return EINVAL;
    if (pair.queued >= pair.limits.max_send_wr) return ENOMEM;
    if ((request->send_flags & IBV_SEND_INLINE) != 0 && request->sg_list->length > pair.limits.max_inline_data) {
      return EINVAL;
    }
    ++world().total.work_requests;
    ++pair.queued;
    ++pair.unsignaled;
    const ibv_wc_status status = pair.state == IBV_QPS_ERR ? IBV_WC_WR_FLUSH_ERR : write_remote(pair, *request);
    if (status == IBV_WC_SUCCESS && (request->send_flags & IBV_SEND_SIGNALED) == 0) continue;
    const Completion added{completion(request->wr_id, status, IBV_WC_RDMA_WRITE), &pair,
                           std::exchange(pair.unsignaled, 0)};
    if (status == IBV_WC_SUCCESS && world().holding) {
      world().held.push_back(added);
      continue;
    }
    world().total.completions += status == IBV_WC_SUCCESS ? 1 : 0;
    complete(pair.send_cq, added, false);
    if (status != IBV_WC_SUCCESS && pair.state != IBV_QPS_ERR) enter_error(pair);
  }
  return 0;
}

int post_recv(ibv_qp* which, ibv_recv_wr* request, ibv_recv_wr** refused) {
  const std::scoped_lock lock(world().mutex);
  auto& pair = *static_cast<Pair*>(which);
  for (; request != nullptr; request = request->next) {
    *refused = request;
    if (pair.receives >= pair.limits.max_recv_wr) return ENOMEM;
    ++pair.receives;
    if (pair.state == IBV_QPS_ERR) enter_error(pair);
    if (pair.waiting.empty() || pair.state == IBV_QPS_ERR) continue;
    deliver(pair, pair.waiting.front(), IBV_WC_RECV_RDMA_WITH_IMM);
    pair.waiting.pop_front();
  }
  return 0;
}

int poll_cq(ibv_cq* which, int most, ibv_wc* out) {
  const std::scoped_lock lock(world().mutex);
  auto& queue = *static_cast<Queue*>(which);
  int count = 0;
  for (; count < most && !queue.done.empty(); ++count) {
    out[count] = queue.done.front().wc;
    queue.done.front().pair->queued -= queue.done.front().frees;
    queue.done.pop_front();
  }
  return count;
}

int req_notify_cq(ibv_cq* which, int solicited_only) {
  const std::scoped_lock lock(world().mutex);
  world().total.waits += solicited_only == 0 ? 1 : 0;
  static_cast<Queue*>(which)->armed = solicited_only != 0 ? Armed::kSolicited : Armed::kAny;
  return 0;
}

void set_limits(const Limits& to) {
  const std::scoped_lock lock(world().mutex);
  world().limits = to;
}

Counts counts() {
  const std::scoped_lock lock(world().mutex);
  return world().total;
}

std::size_t regions_at(const void* data) {
  const std::scoped_lock lock(world().mutex);
  return static_cast<std::size_t>(std::count_if(world().regions.begin(), world().regions.end(),
                                                [data](const auto& each) { return each.second->addr == data; }));
}

void fail_next(ibv_wc_status status) {
  const std::scoped_lock lock(world().mutex);
  world().failing = status;
}

void hold_completions(bool to) {
  const std::scoped_lock lock(world().mutex);
  world().holding = to;
  while (!world().holding && !world().held.empty()) {
    ++world().total.completions;
    complete(world().held.front().pair->send_cq, world().held.front(), false);
    world().held.pop_front();
  }
}

void arrive(std::uint32_t queue_pair, std::uint32_t immediate, ibv_wc_opcode opcode) {
  const std::scoped_lock lock(world().mutex);
  deliver(*world().pairs.at(queue_pair), htonl(immediate), opcode);
}

}  // namespace fake_verbs
