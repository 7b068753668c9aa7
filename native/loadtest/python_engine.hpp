// An engine that is a Python callable, and samples that a Python callable reads; the GIL is taken for the calls alone.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "loadtest/copier_and_engine.hpp"
#include "loadtest/sample_library.hpp"

namespace lanewise::loadtest {

// A Python object that any thread may release.
class PythonObject {
 public:
  explicit PythonObject(nanobind::object object) : object_(std::move(object)) {}
  ~PythonObject();
  PythonObject(const PythonObject&) = delete;
  PythonObject& operator=(const PythonObject&) = delete;
  const nanobind::object& get() const { return object_; }

 private:
  nanobind::object object_;
};

// The bytes of a Python object, read in place. Constructed under the GIL, released by any thread.
class BufferView {
 public:
  // nb::python_error for what holds no bytes in a row.
  explicit BufferView(nanobind::handle object);
  ~BufferView();
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;
  const std::byte* data() const { return static_cast<const std::byte*>(view_.buf); }
  std::size_t size() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

// fill(sample) gives a sample's bytes.
Fill python_fill(nanobind::object fill);

// A batch in a GPU's memory, for whoever reads __cuda_array_interface__.
struct CudaArray {
  std::size_t samples, bytes, stride;
  std::uint64_t address;
  std::shared_ptr<const void> keeper;
};

// call(batch, samples): a (n, bytes) uint8 array (a CudaArray on a GPU) and the indices of the samples. It returns
// None, a buffer of n equal parts, or n buffers or None; buffers are read until the stream's next batch.
class PythonEngine : public InferenceEngine {
 public:
  PythonEngine(nanobind::object call, bool on_gpu) : call_(std::move(call)), on_gpu_(on_gpu) {}
  void prepare(std::size_t, std::size_t streams) override { views_.resize(streams); }
  void infer(const Batch& batch, std::span<Answer> answers) override;

 private:
  using BufferViews = std::vector<std::unique_ptr<BufferView>>;
  static void read_answers(BufferViews& views, nanobind::handle outputs, std::span<Answer> answers);

  PythonObject call_;
  bool on_gpu_;
  // By stream: the buffer of its answers. A copy would keep the GIL, which other queues wait for.
  std::vector<BufferViews> views_;
};

}  // namespace lanewise::loadtest
