// Binds native/host. What stops a measurement comes back as ProbeFailure(cause, hint).
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "host/chase.hpp"
#include "host/failure.hpp"
#include "host/memory.hpp"
#include "host/work.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lanewise::bindings {

namespace {

using Free = nb::call_guard<nb::gil_scoped_release>;

void bind_work(nb::module_& m) {
  nb::enum_<host::Work>(m, "HostWork", "What threads do with their pieces; STREAM_ stores past the caches.")
      .value("COPY", host::Work::kCopy)
      .value("STREAM_COPY", host::Work::kStreamCopy)
      .value("READ", host::Work::kRead)
      .value("WRITE", host::Work::kWrite)
      .value("STREAM_WRITE", host::Work::kStreamWrite);

  nb::class_<host::Window>(m, "HostWindow", "The window in which all threads ran, and what each moved in it.")
      .def_ro("seconds", &host::Window::seconds)
      .def_ro("bytes", &host::Window::bytes);

  m.def("common_window", &host::common_window, "timestamps"_a, "block_bytes"_a,
        "The window of threads that began and finished blocks at these times.");
  m.def("has_streams", &host::has_streams, "Whether this CPU has stores past the caches.");
  m.def("fill_pattern", &host::fill_pattern, "memory"_a, Free(), "Words that tell every place of the memory apart.");

  m.def("spoil", &host::spoil, "memory"_a, Free(), "Make every page unlike anything that work leaves behind.");

  nb::class_<host::Pieces>(m, "HostPieces", "What one thread works on, and its CPU (-1: any).")
      .def(nb::init<int, std::vector<host::Memory*>, std::vector<host::Memory*>>(), "cpu"_a, "sources"_a, "targets"_a,
           nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>());

  nb::class_<host::Crew>(m, "HostCrew", "Pinned threads that work at once.")
      .def(nb::init<std::vector<host::Pieces>, std::size_t>(), "threads"_a, "block"_a, nb::keep_alive<1, 2>())
      .def("run", &host::Crew::run, "work"_a, "seconds"_a, Free(), "Work for about that long; the common window.")
      .def("begin_check", &host::Crew::begin_check, "What is verified begins here; spoil all targets before.")
      .def("holds", &host::Crew::holds, "work"_a, "thread"_a, "piece"_a, Free(),
           "Whether that target holds what was copied or written since begin_check.")
      .def("adds_up", &host::Crew::adds_up, "thread"_a, Free(), "Whether what was read since adds up.")
      .def_prop_ro("threads", &host::Crew::threads);
}

void bind_chase(nb::module_& m) {
  nb::class_<host::Chase>(m, "HostChase", "A chain of loads through every line of the pieces.")
      .def(nb::init<std::vector<host::Memory*>>(), "pieces"_a, nb::keep_alive<1, 2>())
      .def("fill", &host::Chase::fill, "piece"_a, Free(), "Write the links that start in one piece.")
      .def("run", &host::Chase::run, "cpu"_a, "seconds"_a, Free(), "Nanoseconds a load.")
      .def("verify", &host::Chase::verify, Free(), "Whether the loads led where the links should.")
      .def("next", &host::Chase::next, "line"_a, "The line that the link in a line leads to.")
      .def_prop_ro("lines", &host::Chase::lines)
      .def_prop_ro("loads", &host::Chase::loads);
}

}  // namespace

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
  bind_work(m);
  bind_chase(m);
}

}  // namespace lanewise::bindings
