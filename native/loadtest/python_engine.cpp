#include "loadtest/python_engine.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>

#include "host/failure.hpp"

namespace nb = nanobind;

namespace lanewise::loadtest {

namespace {

// "ValueError: boom", and where it was raised.
host::Failure failure_of(const nb::python_error& error, const std::string& what) {
  const auto text = [](nb::handle object) { return std::string(nb::str(object).c_str()); };
  std::string hint;
  try {
    if (nb::hasattr(error.value(), "hint")) hint = text(error.value().attr("hint"));
    nb::object at = error.traceback() ? nb::borrow(error.traceback()) : nb::none();
    while (!at.is_none() && !at.attr("tb_next").is_none()) at = at.attr("tb_next");
    if (hint.empty() && !at.is_none()) {
      hint = "it was raised in " + text(at.attr("tb_frame").attr("f_code").attr("co_filename")) + ", line " +
             text(at.attr("tb_lineno"));
    }
    return {what + ": " + text(error.type().attr("__name__")) + ": " + text(error.value()), hint};
  } catch (nb::python_error& second) {  // an exception that cannot be shown
    second.discard_as_unraisable("lanewise: an error's text");
    return {what, hint};
  }
}

nb::object indices_of(std::span<const QueuedQuery> queries) {
  auto* const indices = new std::uint64_t[queries.size()];
  const nb::capsule owner(indices, [](void* at) noexcept { delete[] static_cast<std::uint64_t*>(at); });
  for (std::size_t i = 0; i < queries.size(); ++i) indices[i] = queries[i].sample;
  return nb::cast(nb::ndarray<nb::numpy, std::uint64_t>(indices, {queries.size()}, owner));
}

nb::object view_of(const Batch& batch) {
  using Keeper = std::shared_ptr<const void>;
  const nb::capsule owner(new Keeper(batch.keeper), [](void* at) noexcept { delete static_cast<Keeper*>(at); });
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(reinterpret_cast<void*>(batch.address),
                                                       {batch.queries.size(), batch.bytes}, owner,
                                                       {static_cast<std::int64_t>(batch.stride), 1}));
}

// One part of an answer: empty where there is none.
void set(Answer& answer, const std::byte* data, std::size_t bytes) {
  if (bytes == 0) return;
  answer.data = data;
  answer.bytes = bytes;
}

[[noreturn]] void refuse(std::size_t count) {
  throw host::Failure("the engine's answer is not one for each of " + std::to_string(count) + " queries",
                      "return None, a buffer of as many equal parts, or a list of as many bytes or None");
}

}  // namespace

BufferView::BufferView(nb::handle object) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
}

BufferView::~BufferView() {
  if (!Py_IsInitialized()) return;  // nobody is left to free it
  const nb::gil_scoped_acquire python;
  PyBuffer_Release(&view_);
}

PythonObject::~PythonObject() {
  if (!Py_IsInitialized()) {
    object_.release();  // nobody is left to free it
    return;
  }
  const nb::gil_scoped_acquire python;
  object_.reset();
}

Fill python_fill(nb::object fill) {
  return [callable = std::make_shared<PythonObject>(std::move(fill))](std::uint64_t sample, std::span<std::byte> into) {
    const nb::gil_scoped_acquire python;
    const std::string name = "sample " + std::to_string(sample);
    try {
      const nb::object bytes = callable->get()(sample);
      const BufferView view(bytes);
      if (view.size() != into.size()) {
        throw host::Failure(
            name + " has " + std::to_string(view.size()) + " bytes in place of " + std::to_string(into.size()),
            "every sample of a data set has the same size");
      }
      std::memcpy(into.data(), view.data(), view.size());
    } catch (const nb::python_error& error) {
      throw failure_of(error, name + " cannot be read");
    }
  };
}

void PythonEngine::infer(const Batch& batch, std::span<Answer> answers) {
  const nb::gil_scoped_acquire python;
  try {
    BufferViews& views = views_[batch.stream];
    views.clear();  // its answers were passed on; the call may write there again
    nb::object data =
        on_gpu_ ? nb::cast(CudaArray{batch.queries.size(), batch.bytes, batch.stride, batch.address, batch.keeper})
                : view_of(batch);
    const nb::object outputs = call_.get()(std::move(data), indices_of(batch.queries));
    if (!outputs.is_none()) read_answers(views, outputs, answers);
  } catch (const nb::python_error& error) {
    throw failure_of(error, "the engine failed");
  }
}

void PythonEngine::read_answers(BufferViews& views, nb::handle outputs, std::span<Answer> answers) {
  const std::size_t count = answers.size();
  if (PyObject_CheckBuffer(outputs.ptr()) != 0) {
    const BufferView& whole = *views.emplace_back(std::make_unique<BufferView>(outputs));
    const std::size_t each = whole.size() / count;
    if (each * count != whole.size()) refuse(count);
    for (std::size_t i = 0; i < count; ++i) set(answers[i], whole.data() + i * each, each);
    return;
  }
  std::size_t next = 0;
  for (const nb::handle one : outputs) {
    if (next == count) refuse(count);
    if (!one.is_none()) {
      const BufferView& part = *views.emplace_back(std::make_unique<BufferView>(one));
      set(answers[next], part.data(), part.size());
    }
    ++next;
  }
  if (next != count) refuse(count);
}

}  // namespace lanewise::loadtest
