#include "fake_verbs.hpp"

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

// Header macros in the place of functions.
#undef ibv_reg_mr
#undef ibv_query_port
#undef ibv_get_device_list

namespace {

enum class Armed { kNo, kSolicited, kAny };

struct Domain : ibv_pd {
  int children = 0;
};
struct Region : ibv_mr {
  int access = 0;
  bool holds(std::uint64_t at, std::size_t bytes) const {
    const auto first = reinterpret_cast<std::uintptr_t>(addr);
    return at >= first && at + bytes <= first + length;
  }
};
struct Events : ibv_comp_channel {
  std::deque<ibv_cq*> raised;
};
struct Pair;
struct Completion {
  ibv_wc wc;
  Pair* pair;
  std::size_t frees;  // work requests of its send queue
};
struct Queue : ibv_cq {
  std::deque<Completion> done;
  Armed armed = Armed::kNo;
  unsigned taken = 0, acknowledged = 0;  // events
  int users = 0;
};
struct Pair : ibv_qp {
  std::uint32_t peer = 0;
  ibv_qp_cap limits{};
  std::size_t queued = 0;      // work requests whose completion was not read yet
  std::size_t unsignaled = 0;  // of them, since the last signalled one
  std::size_t receives = 0;
  std::deque<std::uint32_t> waiting;  // immediates without a receive
};

std::mutex mutex;  // what follows, and all of the objects
fake_verbs::Limits limits;
fake_verbs::Counts total;
std::map<std::uint32_t, Region*> regions;
std::map<std::uint32_t, Pair*> pairs;
std::uint32_t next_number = 100;
std::optional<ibv_wc_status> failing;
bool holding = false;
std::deque<Completion> held;
ibv_device device{};

void must(bool is, const char* what) {
  if (is) return;
  std::fprintf(stderr, "fake_verbs: %s\n", what);
  std::abort();
}

void complete(ibv_cq* queue, const Completion& added, bool solicited) {
  auto& into = *static_cast<Queue*>(queue);
  into.done.push_back(added);
  must(into.done.size() <= static_cast<std::size_t>(into.cqe), "a completion queue overran");
  const bool bad = added.wc.status != IBV_WC_SUCCESS;
  if (into.armed == Armed::kNo || (into.armed == Armed::kSolicited && !solicited && !bad)) return;
  into.armed = Armed::kNo;
  ++total.events;
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

void enter_error(Pair& pair) {
  pair.state = IBV_QPS_ERR;
  for (; pair.receives > 0; --pair.receives) {
    complete(pair.recv_cq, {completion(0, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV), &pair, 0}, false);
  }
}

void deliver(Pair& to, std::uint32_t immediate, ibv_wc_opcode opcode) {
  --to.receives;
  ibv_wc wc = completion(0, IBV_WC_SUCCESS, opcode);
  wc.imm_data = immediate;
  complete(to.recv_cq, {wc, &to, 0}, true);
}

Region* region_of(std::uint32_t key) { return regions.contains(key) ? regions[key] : nullptr; }

ibv_wc_status write_remote(Pair& pair, const ibv_send_wr& request) {
  Pair* const peer = pairs.contains(pair.peer) ? pairs[pair.peer] : nullptr;
  if (failing) return *std::exchange(failing, std::nullopt);
  if (peer == nullptr || (peer->state != IBV_QPS_RTR && peer->state != IBV_QPS_RTS)) return IBV_WC_RETRY_EXC_ERR;
  const ibv_sge& piece = *request.sg_list;
  Region* const from = region_of(piece.lkey);
  const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
  if (!is_inline && (from == nullptr || !from->holds(piece.addr, piece.length))) return IBV_WC_LOC_PROT_ERR;
  Region* const to = region_of(request.wr.rdma.rkey);
  if (to == nullptr || (to->access & IBV_ACCESS_REMOTE_WRITE) == 0 ||
      !to->holds(request.wr.rdma.remote_addr, piece.length)) {
    enter_error(*peer);
    return IBV_WC_REM_ACCESS_ERR;
  }
  std::memcpy(reinterpret_cast<void*>(request.wr.rdma.remote_addr), reinterpret_cast<const void*>(piece.addr),
              piece.length);
  total.inlined += is_inline ? 1 : 0;
  if (request.opcode != IBV_WR_RDMA_WRITE_WITH_IMM) return IBV_WC_SUCCESS;
  must((request.send_flags & IBV_SEND_SOLICITED) != 0, "an immediate that wakes nobody");
  if (peer->receives > 0) {
    deliver(*peer, request.imm_data, IBV_WC_RECV_RDMA_WITH_IMM);
  } else {
    peer->waiting.push_back(request.imm_data);
  }
  return IBV_WC_SUCCESS;
}

int post_send(ibv_qp* which, ibv_send_wr* request, ibv_send_wr** refused) {
  const std::scoped_lock lock(mutex);
  auto& pair = *static_cast<Pair*>(which);
  ++total.posts;
  for (; request != nullptr; request = request->next) {
    *refused = request;
    if (pair.state != IBV_QPS_RTS && pair.state != IBV_QPS_ERR) return EINVAL;
    if (pair.queued >= pair.limits.max_send_wr) return ENOMEM;
    if ((request->send_flags & IBV_SEND_INLINE) != 0 && request->sg_list->length > pair.limits.max_inline_data) {
      return EINVAL;
    }
    ++total.work_requests;
    ++pair.queued;
    ++pair.unsignaled;
    const ibv_wc_status status = pair.state == IBV_QPS_ERR ? IBV_WC_WR_FLUSH_ERR : write_remote(pair, *request);
    if (status == IBV_WC_SUCCESS && (request->send_flags & IBV_SEND_SIGNALED) == 0) continue;
    const Completion added{completion(request->wr_id, status, IBV_WC_RDMA_WRITE), &pair,
                           std::exchange(pair.unsignaled, 0)};
    if (status == IBV_WC_SUCCESS && holding) {
      held.push_back(added);
      continue;
    }
    total.completions += status == IBV_WC_SUCCESS ? 1 : 0;
    complete(pair.send_cq, added, false);
    if (status != IBV_WC_SUCCESS && pair.state != IBV_QPS_ERR) enter_error(pair);
  }
  return 0;
}

int post_recv(ibv_qp* which, ibv_recv_wr* request, ibv_recv_wr** refused) {
  const std::scoped_lock lock(mutex);
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
  const std::scoped_lock lock(mutex);
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
  const std::scoped_lock lock(mutex);
  total.waits += solicited_only == 0 ? 1 : 0;
  static_cast<Queue*>(which)->armed = solicited_only != 0 ? Armed::kSolicited : Armed::kAny;
  return 0;
}

}  // namespace

namespace fake_verbs {

void set_limits(const Limits& to) {
  const std::scoped_lock lock(mutex);
  limits = to;
}

Counts counts() {
  const std::scoped_lock lock(mutex);
  return total;
}

void fail_next(ibv_wc_status status) {
  const std::scoped_lock lock(mutex);
  failing = status;
}

void hold_completions(bool to) {
  const std::scoped_lock lock(mutex);
  holding = to;
  while (!holding && !held.empty()) {
    ++total.completions;
    complete(held.front().pair->send_cq, held.front(), false);
    held.pop_front();
  }
}

void arrive(std::uint32_t queue_pair, std::uint32_t immediate, ibv_wc_opcode opcode) {
  const std::scoped_lock lock(mutex);
  deliver(*pairs.at(queue_pair), htonl(immediate), opcode);
}

}  // namespace fake_verbs

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  *count = 1;
  std::snprintf(device.name, sizeof device.name, "%s", fake_verbs::kDevice);
  return new ibv_device*[2]{&device, nullptr};
}
void ibv_free_device_list(ibv_device** list) { delete[] list; }
const char* ibv_get_device_name(ibv_device* which) { return which->name; }

ibv_context* ibv_open_device(ibv_device* which) {
  auto* const context = new ibv_context{};
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  return context;
}
int ibv_close_device(ibv_context* context) {
  delete context;
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* out) {
  const std::scoped_lock lock(mutex);
  *out = {};
  out->max_qp = 64;
  out->max_qp_wr = limits.work_requests;
  out->max_cqe = limits.completions;
  out->max_qp_rd_atom = 16;
  return 0;
}
int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr* compatible) {
  auto* const out = reinterpret_cast<ibv_port_attr*>(compatible);
  *out = {};
  out->state = IBV_PORT_ACTIVE;
  out->active_mtu = IBV_MTU_4096;
  out->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}
int ibv_query_gid(ibv_context*, std::uint8_t, int, ibv_gid* out) {
  std::memset(out, 0, sizeof *out);
  out->raw[15] = 1;
  return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) { return new Domain{{context, 0}, 0}; }
int ibv_dealloc_pd(ibv_pd* which) {
  auto* const domain = static_cast<Domain*>(which);
  must(domain->children == 0, "a protection domain is freed before what is in it");
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* data, std::size_t bytes, int access) {
  const std::scoped_lock lock(mutex);
  const std::uint32_t key = next_number++;
  auto* const region = new Region{{domain->context, domain, data, bytes, 0, key, key}, access};
  regions[key] = region;
  ++static_cast<Domain*>(domain)->children;
  return region;
}
int ibv_dereg_mr(ibv_mr* which) {
  const std::scoped_lock lock(mutex);
  regions.erase(which->lkey);
  --static_cast<Domain*>(which->pd)->children;
  delete static_cast<Region*>(which);
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return new Events{{context, eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC), 0}, {}};
}
int ibv_destroy_comp_channel(ibv_comp_channel* events) {
  must(events->refcnt == 0, "a completion channel is freed before its queues");
  close(events->fd);
  delete static_cast<Events*>(events);
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void*, ibv_comp_channel* channel, int) {
  auto* const queue = new Queue{};
  queue->context = context;
  queue->channel = channel;
  queue->cqe = entries;
  if (channel != nullptr) ++channel->refcnt;
  return queue;
}
int ibv_destroy_cq(ibv_cq* which) {
  auto* const queue = static_cast<Queue*>(which);
  must(queue->users == 0, "a completion queue is freed before its queue pair");
  must(queue->taken == queue->acknowledged, "a completion queue is freed with events that nobody acknowledged");
  if (queue->channel != nullptr) --queue->channel->refcnt;
  delete queue;
  return 0;
}
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void**) {
  std::uint64_t one = 0;
  if (read(channel->fd, &one, sizeof one) < 0) return -1;
  const std::scoped_lock lock(mutex);
  auto& raised = static_cast<Events*>(channel)->raised;
  *queue = raised.front();
  raised.pop_front();
  ++static_cast<Queue*>(*queue)->taken;
  return 0;
}
void ibv_ack_cq_events(ibv_cq* queue, unsigned count) {
  const std::scoped_lock lock(mutex);
  static_cast<Queue*>(queue)->acknowledged += count;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  const std::scoped_lock lock(mutex);
  if (wanted->cap.max_inline_data > limits.inline_bytes ||
      wanted->cap.max_send_wr > static_cast<std::uint32_t>(limits.work_requests)) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const pair = new Pair{};
  pair->context = domain->context;
  pair->pd = domain;
  pair->send_cq = wanted->send_cq;
  pair->recv_cq = wanted->recv_cq;
  pair->limits = wanted->cap;
  pair->qp_num = next_number++;
  pair->state = IBV_QPS_RESET;
  pairs[pair->qp_num] = pair;
  ++static_cast<Domain*>(domain)->children;
  ++static_cast<Queue*>(pair->send_cq)->users;
  ++static_cast<Queue*>(pair->recv_cq)->users;
  return pair;
}
int ibv_modify_qp(ibv_qp* which, ibv_qp_attr* attributes, int mask) {
  const std::scoped_lock lock(mutex);
  auto& pair = *static_cast<Pair*>(which);
  if ((mask & IBV_QP_DEST_QPN) != 0) pair.peer = attributes->dest_qp_num;
  if ((mask & IBV_QP_STATE) == 0) return 0;
  if (attributes->qp_state == IBV_QPS_ERR) {
    enter_error(pair);
  } else {
    pair.state = attributes->qp_state;
  }
  return 0;
}
int ibv_destroy_qp(ibv_qp* which) {
  const std::scoped_lock lock(mutex);
  std::erase_if(held, [which](const Completion& each) { return each.pair == which; });
  pairs.erase(which->qp_num);
  --static_cast<Domain*>(which->pd)->children;
  --static_cast<Queue*>(which->send_cq)->users;
  --static_cast<Queue*>(which->recv_cq)->users;
  delete static_cast<Pair*>(which);
  return 0;
}

const char* ibv_wc_status_str(ibv_wc_status status) {
  if (status == IBV_WC_REM_ACCESS_ERR) return "remote access error";
  return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "another error";
}
}
