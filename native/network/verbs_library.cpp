#include "network/verbs_library.hpp"

#include <cstddef>
#include <cstdint>

#ifdef LANEWISE_VERBS
#include <dlfcn.h>

#include <string>

#include "host/failure.hpp"

namespace lanewise::network {
namespace {

VerbsLibrary open_library() {
  void* const library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw host::Failure("libibverbs.so.1 cannot be opened",
                        "install rdma-core (Debian: libibverbs1 ibverbs-providers)");
  }
  const auto find = [library](const char* name, auto& pointer) {
    void* const symbol = dlsym(library, (std::string("ibv_") + name).c_str());
    if (symbol == nullptr) {
      throw host::Failure(std::string("libibverbs.so.1 has no ibv_") + name, "install a current rdma-core");
    }
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(symbol);
  };
  VerbsLibrary out{};
  find("get_device_list", out.get_device_list);
  find("free_device_list", out.free_device_list);
  find("get_device_name", out.get_device_name);
  find("open_device", out.open_device);
  find("close_device", out.close_device);
  find("query_device", out.query_device);
  find("query_port", out.query_port);
  find("query_gid", out.query_gid);
  find("alloc_pd", out.alloc_pd);
  find("dealloc_pd", out.dealloc_pd);
  find("reg_mr", out.reg_mr);
  out.reg_dmabuf_mr = reinterpret_cast<decltype(out.reg_dmabuf_mr)>(dlsym(library, "ibv_reg_dmabuf_mr"));
  find("dereg_mr", out.dereg_mr);
  find("create_comp_channel", out.create_comp_channel);
  find("destroy_comp_channel", out.destroy_comp_channel);
  find("create_cq", out.create_cq);
  find("destroy_cq", out.destroy_cq);
  find("get_cq_event", out.get_cq_event);
  find("ack_cq_events", out.ack_cq_events);
  find("create_qp", out.create_qp);
  find("modify_qp", out.modify_qp);
  find("destroy_qp", out.destroy_qp);
  find("wc_status_str", out.wc_status_str);
  return out;
}

}  // namespace

const VerbsLibrary& verbs_library() {
  static const VerbsLibrary library = open_library();
  return library;
}

}  // namespace lanewise::network
#endif
