// The functions of libibverbs.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fake_verbs_world.hpp"

using namespace fake_verbs;

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  *count = 2;
  std::snprintf(world().devices[0].name, sizeof world().devices[0].name, "%s", fake_verbs::kDevice);
  std::snprintf(world().devices[1].name, sizeof world().devices[1].name, "%s", fake_verbs::kOtherDevice);
  return new ibv_device*[3]{&world().devices[0], &world().devices[1], nullptr};
}
void ibv_free_device_list(ibv_device** list) { delete[] list; }
const char* ibv_get_device_name(ibv_device* which) { return which->name; }

ibv_context* ibv_open_device(ibv_device*) {
  const std::scoped_lock lock(world().mutex);
  ++world().total.contexts;
  auto* const context = new Context{};
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  return context;
}
int ibv_close_device(ibv_context* which) {
  const std::scoped_lock lock(world().mutex);
  auto* const context = static_cast<Context*>(which);
  must(context->domains == 0, "a device is closed before its protection domains");
  --world().total.contexts;
  delete context;
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* out) {
  const std::scoped_lock lock(world().mutex);
  *out = {};
  out->max_qp = 64;
  out->max_qp_wr = world().limits.work_requests;
  out->max_cqe = world().limits.completions;
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

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  const std::scoped_lock lock(world().mutex);
  ++static_cast<Context*>(context)->domains;
  return new Domain{{context, 0}, 0};
}
int ibv_dealloc_pd(ibv_pd* which) {
  const std::scoped_lock lock(world().mutex);
  auto* const domain = static_cast<Domain*>(which);
  must(domain->children == 0, "a protection domain is freed before what is in it");
  --static_cast<Context*>(domain->context)->domains;
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* data, std::size_t bytes, int access) {
  const std::scoped_lock lock(world().mutex);
  const std::uint32_t key = world().next_number++;
  auto* const region = new Region{{domain->context, domain, data, bytes, 0, key, key}, access, nullptr};
  world().regions[key] = region;
  ++static_cast<Domain*>(domain)->children;
  return region;
}
// A file in the place of a dma-buf. FAKE_VERBS_DMA_BUF_ERROR is what a NIC without it says.
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t bytes, std::uint64_t address, int fd,
                          int access) {
  const std::uint64_t page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)), behind = offset % page;
  const char* const refused = std::getenv("FAKE_VERBS_DMA_BUF_ERROR");
  struct stat file{};
  errno = EINVAL;
  if (refused != nullptr) errno = std::atoi(refused);
  if (refused != nullptr || address % page != behind || fstat(fd, &file) != 0) return nullptr;
  if (offset + bytes > static_cast<std::uint64_t>(file.st_size)) return nullptr;
  void* const mapped =
      mmap(nullptr, behind + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset - behind));
  if (mapped == MAP_FAILED) return nullptr;
  ibv_mr* const region = ibv_reg_mr(domain, reinterpret_cast<void*>(address), bytes, access);
  static_cast<Region*>(region)->mapping = static_cast<std::byte*>(mapped) + behind;
  return region;
}
int ibv_dereg_mr(ibv_mr* which) {
  const std::scoped_lock lock(world().mutex);
  if (std::byte* const mapping = static_cast<Region*>(which)->mapping; mapping != nullptr) {
    const std::uintptr_t behind =
        reinterpret_cast<std::uintptr_t>(mapping) % static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    munmap(mapping - behind, behind + which->length);
  }
  world().regions.erase(which->lkey);
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
  const std::scoped_lock lock(world().mutex);
  auto& raised = static_cast<Events*>(channel)->raised;
  *queue = raised.front();
  raised.pop_front();
  ++static_cast<Queue*>(*queue)->taken;
  return 0;
}
void ibv_ack_cq_events(ibv_cq* queue, unsigned count) {
  const std::scoped_lock lock(world().mutex);
  static_cast<Queue*>(queue)->acknowledged += count;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  const std::scoped_lock lock(world().mutex);
  if (wanted->cap.max_inline_data > world().limits.inline_bytes ||
      wanted->cap.max_send_wr > static_cast<std::uint32_t>(world().limits.work_requests)) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const pair = new Pair{};
  pair->context = domain->context;
  pair->pd = domain;
  pair->send_cq = wanted->send_cq;
  pair->recv_cq = wanted->recv_cq;
  pair->limits = wanted->cap;
  pair->qp_num = world().next_number++;
  pair->state = IBV_QPS_RESET;
  world().pairs[pair->qp_num] = pair;
  ++static_cast<Domain*>(domain)->children;
  ++static_cast<Queue*>(pair->send_cq)->users;
  ++static_cast<Queue*>(pair->recv_cq)->users;
  return pair;
}
int ibv_modify_qp(ibv_qp* which, ibv_qp_attr* attributes, int mask) {
  const std::scoped_lock lock(world().mutex);
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
  const std::scoped_lock lock(world().mutex);
  std::erase_if(world().held, [which](const Completion& each) { return each.pair == which; });
  world().pairs.erase(which->qp_num);
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
