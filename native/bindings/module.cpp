// lanewise._native: the parts of the native core, each bound in its own file.
#include <nanobind/nanobind.h>

namespace lanewise::bindings {
void bind_serve(nanobind::module_& m);
void bind_sim(nanobind::module_& m);
}

NB_MODULE(_native, m) {
  m.doc() = "Native core of Lanewise: sharing of links and simulation of flows.";
  lanewise::bindings::bind_sim(m);
  lanewise::bindings::bind_serve(m);
}
