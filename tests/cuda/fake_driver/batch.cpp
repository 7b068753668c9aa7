// cuMemcpyBatchAsync as CUDA 13 has it, or with FAKE_CUDA_12 as 12.8 had it.
#include "world.hpp"

using namespace fake;

extern "C" CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream);

namespace {

CUresult batch(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
               CUmemcpyAttributes* attributes, std::size_t* first_of, std::size_t attribute_count, CUstream stream) {
  if (attribute_count != 1 || first_of[0] != 0 || attributes[0].source_order != 1) return kInvalidValue;
  for (std::size_t i = 0; i < count; ++i) {
    const CUresult result = cuMemcpyHtoDAsync_v2(to[i], reinterpret_cast<const void*>(from[i]), sizes[i], stream);
    if (result != kSuccess) return result;
  }
  return kSuccess;
}

}  // namespace

extern "C" {
#ifdef FAKE_CUDA_12
CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                            CUmemcpyAttributes* attributes, std::size_t* first_of, std::size_t attribute_count,
                            std::size_t* failed, CUstream stream) {
  FAKE(cuMemcpyBatchAsync);
  *failed = count;
  return batch(to, from, sizes, count, attributes, first_of, attribute_count, stream);
}
#else
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                               CUmemcpyAttributes* attributes, std::size_t* first_of, std::size_t attribute_count,
                               CUstream stream) {
  FAKE(cuMemcpyBatchAsync);
  return batch(to, from, sizes, count, attributes, first_of, attribute_count, stream);
}
#endif
}
