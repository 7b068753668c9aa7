#include "network/verbs_context.hpp"

#ifdef LANEWISE_VERBS

namespace lanewise::network {
namespace {

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

}  // namespace

void check_verbs(int error, const char* cause, const char* hint) {
  if (error != 0) throw host::system_failure(cause, error, hint);
}

void check_dma_buf_support() {
  if (verbs_library().reg_dmabuf_mr != nullptr) return;
  throw host::Failure("libibverbs.so.1 has no ibv_reg_dmabuf_mr", "install rdma-core 34 or later");
}

std::shared_ptr<VerbsContext> VerbsContext::of(const std::string& device) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<VerbsContext>> open;
  const std::scoped_lock lock(mutex);
  std::shared_ptr<VerbsContext> context = open[device].lock();
  if (context == nullptr) {
    context.reset(new VerbsContext(device));
    open[device] = context;
  }
  return context;
}

VerbsContext::VerbsContext(const std::string& device)
    : ibv_(verbs_library()),
      name_(device),
      context_(open_device(ibv_, device), [&ibv = ibv_](ibv_context* object) { ibv.close_device(object); }),
      domain_(required(ibv_.alloc_pd(context_.get()), "no protection domain"),
              [&ibv = ibv_](ibv_pd* object) { ibv.dealloc_pd(object); }) {}

VerbsOwned<ibv_mr> VerbsContext::region(const void* data, std::size_t bytes, int access) const {
  return {required(ibv_.reg_mr(domain_.get(), const_cast<void*>(data), bytes, access), "memory cannot be registered"),
          [&ibv = ibv_](ibv_mr* object) { ibv.dereg_mr(object); }};
}

VerbsOwned<ibv_mr> VerbsContext::dma_buf_region(int fd, std::uint64_t offset, std::uint64_t address, std::size_t bytes,
                                                int access) const {
  check_dma_buf_support();
  ibv_mr* const made = ibv_.reg_dmabuf_mr(domain_.get(), offset, bytes, address, fd, access);
  if (made == nullptr) {
    throw host::system_failure(name_ + " does not register GPU memory (ibv_reg_dmabuf_mr)", errno,
                               "its driver must import dma-bufs, as mlx5's does since Linux 5.12");
  }
  return {made, [&ibv = ibv_](ibv_mr* object) { ibv.dereg_mr(object); }};
}

std::shared_ptr<ibv_mr> VerbsContext::shared_region(const void* data, std::size_t bytes, int access) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(shared_, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<ibv_mr>& known = shared_[{data, bytes, access}];
  std::shared_ptr<ibv_mr> shared = known.lock();
  if (shared == nullptr) {
    shared = region(data, bytes, access);
    known = shared;
  }
  return shared;
}

}  // namespace lanewise::network
#endif
