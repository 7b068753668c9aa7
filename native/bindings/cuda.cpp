// Binds native/cuda.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace lanewise::bindings {

void bind_cuda(nb::module_&) {}

}  // namespace lanewise::bindings
