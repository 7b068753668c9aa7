// A GPU as a device: a copier that gathers samples by the fastest method, and an engine that holds the GPU by a kernel.
#pragma once

#include <optional>

#include "loadtest/copier_and_engine.hpp"
#include "loadtest/gpu_methods.hpp"
#include "loadtest/sample_library.hpp"

namespace lanewise::loadtest {

// Memory for a library that the GPUs of that driver read.
Allocate pinned_by(const std::shared_ptr<cuda::Engine>& driver, int ordinal);
// The same of memory that is there already, for one copy of the library.
Allocate pinned_by(const std::shared_ptr<cuda::Engine>& driver, int ordinal, Block memory);

class GpuCopier : public SampleCopier {
 public:
  // `method`: one of kGpuMethods, or "auto" for the fastest of them, tried in prepare().
  GpuCopier(std::shared_ptr<cuda::Engine> driver, int ordinal, SampleLibrary& library, int node,
            const std::string& method);
  // Of a library in this GPU's own memory, which an RDMA device writes to: a kernel gathers its samples. `flush`: the
  // GPU sees what was written only after a flush.
  GpuCopier(std::shared_ptr<cuda::Engine> driver, int ordinal, SampleLibrary& library, bool flush);
  void prepare(std::size_t batch, std::size_t streams) override;
  void copy(std::size_t stream, std::span<const std::uint32_t> slots) override;
  std::uint64_t address(std::size_t stream) const override { return streams_[stream]->address(); }
  std::shared_ptr<const void> keeper(std::size_t stream) const override { return streams_[stream]->keeper(); }
  const std::byte* read_back(std::size_t stream, std::size_t bytes) override;
  std::string method() const override { return kGpuMethods[static_cast<std::size_t>(method_)]; }
  std::vector<std::pair<std::string, double>> seconds_by_method() const override { return seconds_by_method_; }

 private:
  using Streams = std::vector<std::unique_ptr<GpuStream>>;

  Streams make_streams(GpuMethod method, std::size_t batch, std::size_t streams) const;
  GpuMethod fastest(std::size_t batch, std::size_t streams);
  double seconds(const Streams& streams, GpuMethod method, std::size_t batch) const;
  std::vector<std::uint32_t> scattered(std::size_t number, std::size_t batch) const;

  std::shared_ptr<cuda::Engine> driver_;
  const cuda::Gpu& gpu_;
  GpuSource source_;
  std::size_t resident_;
  std::optional<GpuMethod> asked_;
  GpuMethod method_ = GpuMethod::kCalls;
  bool flush_ = false;
  std::vector<std::pair<std::string, double>> seconds_by_method_;
  Streams streams_;
};

// Batches one after the other on one stream: a kernel each, which lasts for the service time.
class SyntheticGpuEngine : public InferenceEngine {
 public:
  SyntheticGpuEngine(std::shared_ptr<cuda::Engine> driver, int ordinal, ServiceTime service);
  void prepare(std::size_t batch, std::size_t streams) override;
  void infer(const Batch& batch, std::span<Answer> answers) override;

 private:
  std::shared_ptr<cuda::Engine> driver_;
  const cuda::Gpu& gpu_;
  ServiceTime service_;
  std::vector<cuda::Event> done_;
  std::optional<cuda::Stream> stream_;
};

}  // namespace lanewise::loadtest
