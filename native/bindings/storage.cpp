// Binds native/storage.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace lanewise::bindings {

void bind_storage(nb::module_&) {}

}  // namespace lanewise::bindings
