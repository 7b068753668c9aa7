// The same by UCX active messages, one thread a side, which polls as UCX's own tests do: a query is a message whose
// header has the slot and whose data is the sample; UCX chooses between eager and rendezvous. Data of a rendezvous
// goes into its slot; eager data is summed where UCX has put it. The answer is a message of 8 bytes.
// TRANSPORT: of UCX, as for UCX_TLS: shm, tcp.
#include <ucp/api/ucp.h>

#include "peer.hpp"

namespace {

struct Answer {
  std::uint32_t slot, sum;
};
enum : unsigned { kQuery = 1, kAnswer = 2 };

void ok(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
  std::_Exit(1);
}

// A worker with an endpoint to the other process, over whose socket the addresses go.
class Worker {
 public:
  explicit Worker(const peer::Options& options) {
    setenv("UCX_TLS", options.transport.c_str(), 0);
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM;
    ok(ucp_init(&params, nullptr, &context_), "ucp_init");
    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SINGLE;
    ok(ucp_worker_create(context_, &worker, &worker_), "ucp_worker_create");
  }
  void on(unsigned id, ucp_am_recv_callback_t call, void* with) {
    ucp_am_handler_param_t param{};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    param.id = id;
    param.cb = call;
    param.arg = with;
    ok(ucp_worker_set_am_recv_handler(worker_, &param), "ucp_worker_set_am_recv_handler");
  }
  void connect(int socket) {
    ucp_address_t* address = nullptr;
    std::size_t size = 0;
    ok(ucp_worker_get_address(worker_, &address, &size), "ucp_worker_get_address");
    peer::check(write(socket, &size, sizeof size) == sizeof size, "write");
    peer::check(write(socket, address, size) == static_cast<ssize_t>(size), "write");
    ucp_worker_release_address(worker_, address);
    peer::check(recv(socket, &size, sizeof size, MSG_WAITALL) == sizeof size, "recv");
    std::vector<std::byte> other(size);
    peer::check(recv(socket, other.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size), "recv");
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(other.data());
    ok(ucp_ep_create(worker_, &params, &endpoint_), "ucp_ep_create");
  }
  void send(unsigned id, const void* header, std::size_t header_bytes, const void* data, std::size_t bytes) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK;
    param.cb.send = [](void* request, ucs_status_t status, void*) {
      ok(status, "ucp_am_send_nbx");
      ucp_request_free(request);
    };
    const ucs_status_ptr_t sent = ucp_am_send_nbx(endpoint_, id, header, header_bytes, data, bytes, &param);
    if (UCS_PTR_IS_ERR(sent)) ok(UCS_PTR_STATUS(sent), "ucp_am_send_nbx");
  }
  void progress() {
    while (ucp_worker_progress(worker_) != 0) {
    }
  }
  ucp_worker_h handle() const { return worker_; }

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
};

class Node {
 public:
  Node(const peer::Options& options, int socket)
      : worker_(options),
        bytes_(options.bytes),
        stride_(options.stride()),
        slots_(options.slots * stride_),
        answers_(options.slots) {
    for (std::uint32_t i = 0; i < options.slots; ++i) contexts_.push_back({this, i});
    worker_.on(kQuery, receive, this);
    worker_.connect(socket);
    for (;;) worker_.progress();
  }

 private:
  struct Context {
    Node* node;
    std::uint32_t slot;
  };

  static ucs_status_t receive(void* self, const void* header, std::size_t, void* data, std::size_t bytes,
                              const ucp_am_recv_param_t* about) {
    Node& node = *static_cast<Node*>(self);
    std::uint32_t slot = 0;
    std::memcpy(&slot, header, sizeof slot);
    peer::check(bytes == node.bytes_, "bytes of a query");
    if ((about->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
      node.answer(slot, data);
      return UCS_OK;
    }
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.user_data = &node.contexts_[slot];
    param.cb.recv_am = [](void* request, ucs_status_t status, std::size_t, void* with) {
      ok(status, "ucp_am_recv_data_nbx");
      const Context& context = *static_cast<Context*>(with);
      context.node->answer(context.slot, context.node->at(context.slot));
      ucp_request_free(request);
    };
    const ucs_status_ptr_t request = ucp_am_recv_data_nbx(node.worker_.handle(), data, node.at(slot), bytes, &param);
    if (UCS_PTR_IS_ERR(request)) ok(UCS_PTR_STATUS(request), "ucp_am_recv_data_nbx");
    return UCS_INPROGRESS;
  }

  std::byte* at(std::uint32_t slot) { return slots_.data() + slot * stride_; }
  void answer(std::uint32_t slot, const void* data) {
    answers_[slot] = {slot, lanewise::loadtest::crc32(static_cast<const std::byte*>(data), bytes_)};
    worker_.send(kAnswer, &answers_[slot], sizeof(Answer), nullptr, 0);
  }

  Worker worker_;
  std::size_t bytes_, stride_;
  std::vector<std::byte> slots_;
  std::vector<Answer> answers_;  // kept until they are sent
  std::vector<Context> contexts_;
};

class Frontend {
 public:
  Frontend(const peer::Options& options, int socket, const peer::Library& library, peer::Meter& meter)
      : options_(options), library_(library), meter_(meter), worker_(options), queries_(options.slots) {
    for (std::uint32_t i = 0; i < options.slots; ++i) headers_.push_back(i), free_.push_back(i);
    worker_.on(kAnswer, receive, this);
    worker_.connect(socket);
  }
  void run() {
    for (std::uint64_t query = 0; !meter_.over();) {
      for (; query - answered_ < options_.window; ++query) post(query);
      worker_.progress();
    }
  }

 private:
  void post(std::uint64_t query) {
    const std::uint32_t slot = free_[query % free_.size()];
    queries_[slot] = query;
    meter_.issue(query);
    worker_.send(kQuery, &headers_[slot], sizeof headers_[slot], library_.at(query), options_.bytes);
  }
  static ucs_status_t receive(void* self, const void* header, std::size_t, void*, std::size_t,
                              const ucp_am_recv_param_t*) {
    Frontend& frontend = *static_cast<Frontend*>(self);
    Answer answer{};
    std::memcpy(&answer, header, sizeof answer);
    const std::uint64_t query = frontend.queries_[answer.slot];
    frontend.meter_.answer(query, answer.sum == frontend.library_.sum(query));
    frontend.free_[frontend.answered_++ % frontend.free_.size()] = answer.slot;
    return UCS_OK;
  }

  const peer::Options& options_;
  const peer::Library& library_;
  peer::Meter& meter_;
  Worker worker_;
  std::vector<std::uint64_t> queries_;  // by slot
  std::vector<std::uint32_t> headers_, free_;
  std::uint64_t answered_ = 0;
};

}  // namespace

int main(int count, char** words) {
  const peer::Options options = peer::options(count, words);
  int sockets[2];
  peer::check(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
  const pid_t child = peer::start_node(options, [&] { Node(options, sockets[1]); });
  peer::pin(options, 0);
  const peer::Library library(options);
  peer::Meter meter(options.seconds);
  Frontend(options, sockets[0], library, meter).run();
  const bool right = meter.finish(child);
  std::_Exit(right ? 0 : 1);
}
