// Binds native/network.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace lanewise::bindings {

void bind_network(nb::module_&) {}

}  // namespace lanewise::bindings
