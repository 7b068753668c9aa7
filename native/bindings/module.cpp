// lanewise._native: the parts of the native core, each bound in its own file.
#include <nanobind/nanobind.h>

namespace lanewise::bindings {
void bind_serve(nanobind::module_& m);
void bind_sim(nanobind::module_& m);
#ifdef __linux__
void bind_cuda(nanobind::module_& m);
void bind_dispatch(nanobind::module_& m);
void bind_host(nanobind::module_& m);
void bind_network(nanobind::module_& m);
void bind_storage(nanobind::module_& m);
void bind_systems(nanobind::module_& m);
#endif
}  // namespace lanewise::bindings

NB_MODULE(_native, m) {
  m.doc() = "Native core of Lanewise: sharing of links, simulation of flows, timed copies, reads and messages.";
  lanewise::bindings::bind_sim(m);
  lanewise::bindings::bind_serve(m);
#ifdef __linux__
  lanewise::bindings::bind_host(m);
  lanewise::bindings::bind_storage(m);
  lanewise::bindings::bind_network(m);
  lanewise::bindings::bind_cuda(m);
  lanewise::bindings::bind_systems(m);
  lanewise::bindings::bind_dispatch(m);
#endif
}
