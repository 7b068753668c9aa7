// Binds native/host. What stops a measurement comes back as ProbeFailure(cause, hint).
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "host/failure.hpp"
#include "host/memory.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lanewise::bindings {

void bind_host(nb::module_& m) {
  nb::exception<host::Failure> failure(m, "ProbeFailure", PyExc_RuntimeError);
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* type) {
        try {
          std::rethrow_exception(thrown);
        } catch (const host::Failure& error) {
          PyErr_SetObject(static_cast<PyObject*>(type), nb::make_tuple(error.what(), error.hint()).ptr());
        }
      },
      failure.ptr());

  nb::class_<host::Memory>(m, "HostMemory", "Host memory on a NUMA node (-1: any); ProbeFailure if it cannot be had.")
      .def(nb::init<std::size_t, int>(), "bytes"_a, "node"_a = host::kAnyNode)
      .def_prop_ro("size", &host::Memory::size)
      .def("nodes", &host::Memory::nodes, "most"_a = 4096, "How many pages lie on which node, as the kernel says.");
}

}  // namespace lanewise::bindings
