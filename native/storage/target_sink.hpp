// Memory in which a load stays, of this host or of GPUs: each I/O has a place in it of its own.
#pragma once

#include <memory>
#include <vector>

#include "cuda/driver.hpp"
#include "host/memory.hpp"
#include "storage/gpu_sink.hpp"
#include "storage/job.hpp"
#include "storage/sink.hpp"

namespace lanewise::storage {

class TargetSink : public Sink {
 public:
  TargetSink(const Job& job, Slots slots);
  ~TargetSink() override;

  void take(std::size_t worker, Io io, const std::byte* from, std::size_t bytes) override;
  void give(std::size_t worker, Io io, std::byte* to, std::size_t bytes) override;
  std::byte* straight(Io io) override;
  bool is_straight() const override { return straight_; }
  bool overlaps() const override { return !registered_.empty(); }
  void start(std::size_t worker, Io io, const std::byte* from, std::size_t bytes) override;
  void wait(Io io) override;

 private:
  struct Region {
    std::shared_ptr<const cuda::Context> context;  // none: host memory
    cuda::DeviceMemory device;
    std::vector<cuda::Stream> streams;  // one a slot
    std::unique_ptr<host::Memory> host;
  };
  void register_with_driver(host::Memory& memory);
  cuda::CUdeviceptr device_at(const Region& region, const Place& place) const { return region.device.get() + place.at; }

  const Job& job_;
  const std::size_t stride_;
  const bool straight_;  // reads go where data stays: host memory, and no copy is asked for
  std::vector<Region> regions_;
  std::unique_ptr<host::Memory> staging_;  // of a bounce to GPUs: a second buffer for each slot
  std::vector<host::Memory*> registered_;
};

}  // namespace lanewise::storage
