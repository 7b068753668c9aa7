// A GPU in use: its context and the kernels loaded on it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cuda/driver.hpp"

namespace lanewise::cuda {

// The grid of a kernel: blocks along x and y, threads a block.
struct Grid {
  unsigned x = 1;
  unsigned threads = 1;
  unsigned y = 1;
};

// Memory with pieces of one size in it, and the place of each in a list (32 bits a place) that the GPU reads.
struct PlacedPieces {
  CUdeviceptr base;
  CUdeviceptr places;
};

// host::Failure where the driver has no cuMemcpyBatchAsync.
void check_batches(const Driver& driver);

class Gpu {
 public:
  Gpu(std::shared_ptr<const Driver> driver, int ordinal);

  const std::shared_ptr<const Context>& context() const { return context_; }
  const Calls& calls() const { return context_->calls(); }
  int ordinal() const { return context_->ordinal(); }
  unsigned multiprocessors() const { return multiprocessors_; }
  void check(CUresult result, const char* call) const { context_->check(result, call); }

  // Kernels, queued on a stream of this GPU; see kernels.cu.
  void spin(CUstream stream, CUdeviceptr open, CUdeviceptr timed_out, unsigned long long most_ns) const;
  // Keeps the stream busy for that long.
  void hold(CUstream stream, unsigned long long ns) const;
  // `concurrent`: how many such kernels run at once, each on its share of the multiprocessors. Unshared, later ones
  // would wait for room until earlier ones have ended.
  void copy(CUstream stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes, int passes, int concurrent) const;
  // Both directions by one kernel, the direction into this GPU first.
  void copy_both(CUstream stream, CUdeviceptr to, CUdeviceptr from, CUdeviceptr back_to, CUdeviceptr back_from,
                 std::size_t bytes, int passes, int concurrent) const;
  void gather(CUstream stream, CUdeviceptr to, CUdeviceptr library, CUdeviceptr picks, std::size_t bytes,
              unsigned batch) const;
  // `count` pieces of `bytes` each; `concurrent` as of copy.
  void copy_pieces(CUstream stream, PlacedPieces to, PlacedPieces from, std::size_t count, std::size_t bytes,
                   int concurrent) const;
  // All copies by one cuMemcpyBatchAsync.
  void copy_batch(CUstream stream, std::span<CUdeviceptr> to, std::span<CUdeviceptr> from,
                  std::span<std::size_t> sizes) const;
  void chase(CUstream stream, CUdeviceptr start, unsigned long long steps, unsigned chaser, CUdeviceptr end) const;

  // Fills memory of this GPU with the pattern of `seed`, and waits.
  void fill(CUdeviceptr at, std::size_t bytes, unsigned long long seed) const;
  // The offset of the first byte that differs from the pattern of `seed`; `bytes` if none does.
  std::size_t first_wrong(CUdeviceptr at, std::size_t bytes, unsigned long long seed) const;

  void wait(CUstream stream) const { check(calls().cuStreamSynchronize(stream), "cuStreamSynchronize"); }

 private:
  CUfunction function(const char* name) const;
  Grid grid_for(std::size_t items, int concurrent = 1) const;
  template <class... Values>
  void launch(const char* name, CUfunction kernel, Grid grid, CUstream stream, Values... values) const;

  std::shared_ptr<const Context> context_;
  unsigned multiprocessors_;
  Module module_;
  CUfunction spin_, copy_, copy_both_, gather_, fill_, compare_, chase_, hold_, copy_pieces_;
  Stream stream_;  // of what is not timed
};

}  // namespace lanewise::cuda
