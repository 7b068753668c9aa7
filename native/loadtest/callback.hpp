// An engine that is a Python callable, and samples that one reads; the interpreter's lock is held for the calls alone.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "loadtest/engine.hpp"
#include "loadtest/library.hpp"

namespace lanewise::loadtest {

// A Python object that may be let go by any thread.
class Held {
 public:
  explicit Held(nanobind::object object) : object_(std::move(object)) {}
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  const nanobind::object& get() const { return object_; }

 private:
  nanobind::object object_;
};

// fill(sample) gives a sample's bytes.
Fill python_fill(nanobind::object fill);

// A batch in a GPU's memory, for whoever reads __cuda_array_interface__.
struct DeviceBatch {
  std::size_t samples, bytes, stride;
  std::uint64_t address;
  std::shared_ptr<const void> keeper;
};

// call(batch, samples): a (n, bytes) uint8 array (a DeviceBatch on a GPU) and the indices of the samples. It returns
// None, a buffer of n equal parts, or n buffers or None.
class Callback : public Engine {
 public:
  Callback(nanobind::object call, bool on_gpu) : call_(std::move(call)), on_gpu_(on_gpu) {}
  void prepare(std::size_t, std::size_t streams) override { kept_.resize(streams); }
  void infer(const Batch& batch, std::span<Answer> answers) override;

 private:
  struct Kept {
    std::string bytes;
    std::vector<std::size_t> ends;
  };
  void keep(Kept& kept, nanobind::handle given, std::span<Answer> answers) const;

  Held call_;
  bool on_gpu_;
  std::vector<Kept> kept_;  // by stream, so that answers outlive the Python objects
};

}  // namespace lanewise::loadtest
