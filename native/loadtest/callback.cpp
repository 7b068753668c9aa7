#include "loadtest/callback.hpp"

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

// A view of a Python buffer of bytes in a row.
class View {
 public:
  explicit View(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
  }
  ~View() { PyBuffer_Release(&view_); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  const char* data() const { return static_cast<const char*>(view_.buf); }
  std::size_t size() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

nb::object indices_of(std::span<const Arrived> queries) {
  auto* const indices = new std::uint64_t[queries.size()];
  const nb::capsule owner(indices, [](void* at) noexcept { delete[] static_cast<std::uint64_t*>(at); });
  for (std::size_t i = 0; i < queries.size(); ++i) indices[i] = queries[i].sample;
  return nb::cast(nb::ndarray<nb::numpy, std::uint64_t>(indices, {queries.size()}, owner));
}

nb::object view_of(const Batch& batch) {
  using Keeper = std::shared_ptr<const void>;
  const nb::capsule owner(new Keeper(batch.keeper), [](void* at) noexcept { delete static_cast<Keeper*>(at); });
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(
      reinterpret_cast<void*>(batch.address), {batch.queries.size(), batch.bytes}, owner,
      {static_cast<std::int64_t>(batch.stride), 1}));
}

}  // namespace

Held::~Held() {
  if (!Py_IsInitialized()) {
    object_.release();  // nobody is left to free it
    return;
  }
  const nb::gil_scoped_acquire python;
  object_.reset();
}

Fill python_fill(nb::object fill) {
  return [held = std::make_shared<Held>(std::move(fill))](std::uint64_t sample, std::span<std::byte> into) {
    const nb::gil_scoped_acquire python;
    const std::string name = "sample " + std::to_string(sample);
    try {
      const nb::object bytes = held->get()(sample);
      const View view(bytes);
      if (view.size() != into.size()) {
        throw host::Failure(name + " has " + std::to_string(view.size()) + " bytes in place of " +
                                std::to_string(into.size()), "every sample of a data set has the same size");
      }
      std::memcpy(into.data(), view.data(), view.size());
    } catch (const nb::python_error& error) {
      throw failure_of(error, name + " cannot be read");
    }
  };
}

void Callback::infer(const Batch& batch, std::span<Answer> answers) {
  const nb::gil_scoped_acquire python;
  try {
    nb::object data = on_gpu_ ? nb::cast(DeviceBatch{batch.queries.size(), batch.bytes, batch.stride, batch.address,
                                                     batch.keeper})
                              : view_of(batch);
    const nb::object given = call_.get()(std::move(data), indices_of(batch.queries));
    if (!given.is_none()) keep(kept_[batch.stream], given, answers);
  } catch (const nb::python_error& error) {
    throw failure_of(error, "the engine failed");
  }
}

void Callback::keep(Kept& kept, nb::handle given, std::span<Answer> answers) const {
  const std::size_t count = answers.size();
  kept.bytes.clear();
  kept.ends.clear();
  if (PyObject_CheckBuffer(given.ptr()) != 0) {
    const View view(given);
    kept.bytes.assign(view.data(), view.size());
    for (std::size_t i = 1; i <= count && view.size() % count == 0; ++i) kept.ends.push_back(view.size() / count * i);
  } else {
    for (const nb::handle one : given) {
      if (!one.is_none()) {
        const View view(one);
        kept.bytes.append(view.data(), view.size());
      }
      kept.ends.push_back(kept.bytes.size());
    }
  }
  if (kept.ends.size() != count) {
    throw host::Failure("the engine's answer is not one for each of " + std::to_string(count) + " queries",
                        "return None, a buffer of as many equal parts, or a list of as many bytes or None");
  }
  std::size_t from = 0;
  for (std::size_t i = 0; i < count; from = kept.ends[i++]) {
    if (kept.ends[i] == from) continue;
    answers[i].data = reinterpret_cast<const std::byte*>(kept.bytes.data() + from);
    answers[i].bytes = kept.ends[i] - from;
  }
}

}  // namespace lanewise::loadtest
