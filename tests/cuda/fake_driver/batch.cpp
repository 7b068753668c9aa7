// cuMemcpyBatchAsync as CUDA 13 has it, or with FAKE_CUDA_12 as 12.8 had it.
#include "world.hpp"

using namespace fake;

namespace {

CUresult batch(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
               CUmemcpyAttributes* attributes, std::size_t* first_of, std::size_t attribute_count, CUstream stream) {
  if (attribute_count != 1 || first_of[0] != 0 || attributes[0].source_order != 1) return kInvalidValue;
  auto* const on = reinterpret_cast<Stream*>(stream);
  for (std::size_t i = 0; i < count; ++i) {
    if (to[i] < std::exchange(on->batched_to, to[i])) {
      const std::scoped_lock hold(world().lock);
      ++world().calls["batched to a lower address than before"];
    }
    if (holder(to[i], sizes[i]) == -2 || holder(from[i], sizes[i]) == -2) return kInvalidValue;
    const CUresult result =
        submit(stream, [at = to[i], of = from[i], size = sizes[i]](Stream& on) { move(on, at, of, size); });
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
