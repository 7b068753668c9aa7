// What a DeviceQueue needs of its device: a copier that brings a batch's samples there, and an engine that answers it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "loadtest/query_ring.hpp"

namespace lanewise::loadtest {

// A batch in the device's memory: sample i at `address` + i * `stride`.
struct Batch {
  std::size_t stream = 0;  // which of the queue's batches in flight
  std::span<const QueuedQuery> queries;
  std::uint64_t address = 0;  // the device's; host memory where the device is the CPU
  std::size_t bytes = 0;      // of a sample
  std::size_t stride = 0;
  std::shared_ptr<const void> keeper;  // of that memory
};

// Gathers samples into the device's buffers. One thread a stream, several streams at once.
class SampleCopier {
 public:
  virtual ~SampleCopier() = default;
  // Buffers for `streams` batches of `batch` samples.
  virtual void prepare(std::size_t batch, std::size_t streams) = 0;
  // Brings the library's samples at these slots into the stream's buffer; back when they are there. A host::Failure
  // ends the run.
  virtual void copy(std::size_t stream, std::span<const std::uint32_t> slots) = 0;
  // The buffer, for an engine.
  virtual std::uint64_t address(std::size_t stream) const = 0;
  virtual std::shared_ptr<const void> keeper(std::size_t stream) const = 0;
  // The first `bytes` of the buffer, in host memory until the next call: to verify it.
  virtual const std::byte* read_back(std::size_t stream, std::size_t bytes) = 0;
  // How it copies, with the time of each method that was tried for a full batch (seconds).
  virtual std::string method() const = 0;
  virtual std::vector<std::pair<std::string, double>> seconds_by_method() const { return {}; }
};

// Answers batches. One thread a stream, several streams at once; the device takes one batch after the other.
class InferenceEngine {
 public:
  virtual ~InferenceEngine() = default;
  virtual void prepare(std::size_t batch, std::size_t streams) = 0;
  // Sets data and bytes of the answers, valid until the stream's next batch, or leaves them empty. A host::Failure
  // ends the run.
  virtual void infer(const Batch& batch, std::span<Answer> answers) = 0;
};

// How long the synthetic engine holds its device.
struct ServiceTime {
  std::int64_t batch = 0;  // ns a batch
  double query = 0;        // ns a query of it
  std::int64_t of(std::size_t queries) const {
    return batch + static_cast<std::int64_t>(query * static_cast<double>(queries));
  }
};

}  // namespace lanewise::loadtest
