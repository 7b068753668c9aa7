// Binds native/cuda.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "host/failure.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lanewise::bindings {

namespace {
struct Cuda {
  explicit Cuda(const std::string& library) { throw host::Failure(library + " is not used yet", ""); }
};
struct CudaFlow {
  int src, dst;
  std::size_t bytes;
  int copies, node;
  bool sm, read, p2p;
};
struct CudaDevice {};
struct CudaRun {};
struct CudaTiming {};
}  // namespace

void bind_cuda(nb::module_& m) {
  m.attr("CUDA_MOST_COPIES") = 256;
  nb::class_<Cuda>(m, "Cuda").def(nb::init<const std::string&>(), "library"_a = "libcuda.so.1");
  nb::class_<CudaFlow>(m, "CudaFlow")
      .def(nb::init<int, int, std::size_t, int, int, bool, bool, bool>(), "src"_a, "dst"_a, "bytes"_a, "copies"_a,
           "node"_a = -1, "sm"_a = false, "read"_a = false, "p2p"_a = true);
  nb::class_<CudaDevice>(m, "CudaDevice");
  nb::class_<CudaRun>(m, "CudaRun");
  nb::class_<CudaTiming>(m, "CudaTiming");
}

}  // namespace lanewise::bindings
