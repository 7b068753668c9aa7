// lanewise._loadgen: LoadGen, which runs the systems under test of lanewise._native. What stops a run comes back as
// _native's ProbeFailure(cause, hint).
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "host/failure.hpp"
#include "loadgen/driver.hpp"
#include "loadtest/latency_dict.hpp"

namespace mlperf {
const std::string& LoadgenVersion();
}

namespace nb = nanobind;
using namespace nb::literals;

namespace lanewise::bindings {

namespace {

using namespace loadgen;

void bind_settings(nb::module_& m) {
  nb::enum_<mlperf::TestMode>(
      m, "Mode", "What LoadGen does with a system; FIND_PEAK runs Server tests until it knows the largest rate.")
      .value("PERFORMANCE", mlperf::TestMode::PerformanceOnly)
      .value("ACCURACY", mlperf::TestMode::AccuracyOnly)
      .value("FIND_PEAK", mlperf::TestMode::FindPeakPerformance);
  nb::class_<Settings>(m, "Settings", "What a run is asked to do; times in s.")
      .def(nb::init<>())
      .def_rw("scenario", &Settings::scenario)
      .def_rw("mode", &Settings::mode)
      .def_rw("qps", &Settings::qps)
      .def_rw("bound", &Settings::bound)
      .def_rw("percentile", &Settings::percentile)
      .def_rw("seconds", &Settings::seconds)
      .def_rw("queries", &Settings::queries)
      .def_rw("samples", &Settings::samples)
      .def_rw("seed", &Settings::seed)
      .def_rw("coalesce", &Settings::coalesce)
      .def_rw("sample_count", &Settings::sample_count)
      .def_rw("performance_sample_count", &Settings::performance_sample_count)
      .def_rw("folder", &Settings::folder)
      .def_rw("configs", &Settings::configs)
      .def_rw("model", &Settings::model)
      .def_rw("audit", &Settings::audit)
      .def_rw("end_hopeless", &Settings::end_hopeless)
      .def_rw("direct", &Settings::direct);
}

// Empty where there was no query.
nb::dict figures(const loadtest::Latencies& latencies) {
  return latencies.count() == 0 ? nb::dict() : latency_dict(latencies);
}

void bind_run(nb::module_& m) {
  nb::class_<LoadGenRun>(m, "LoadGenRun", "What was counted of a run beside LoadGen; times in s.")
      .def_prop_ro("issued", &LoadGenRun::issued)
      .def_prop_ro("answered", &LoadGenRun::answered)
      .def_prop_ro("late", &LoadGenRun::late)
      .def_prop_ro("seconds", &LoadGenRun::seconds)
      .def_prop_ro("still", &LoadGenRun::still)
      .def_prop_ro("hopeless", [](const LoadGenRun& self) { return self.end() == End::kHopeless; })
      .def_prop_ro("lag", [](const LoadGenRun& self) { return figures(self.lag()); })
      .def_prop_ro("latency", [](const LoadGenRun& self) { return figures(self.latency()); });
}

// What the waiting thread does meanwhile: a signal, or an error of the caller's function, ends the run and is kept.
class Watcher {
 public:
  explicit Watcher(nb::object tick) : tick_(std::move(tick)) {}

  bool check(const Progress& progress) {
    nb::gil_scoped_acquire gil;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!error_ && !tick_.is_none()) tick_(progress.issued, progress.answered, progress.late);
      return true;
    } catch (nb::python_error& error) {
      if (!error_) error_.emplace(std::move(error));
      return false;
    }
  }

  // An interrupt that came too late to end the run comes again once the caller has the result.
  void interrupt_again() {
    if (error_ && error_->matches(PyExc_KeyboardInterrupt)) {
      error_.reset();
      PyErr_SetInterrupt();
    }
  }

  void rethrow() {
    if (error_) throw nb::python_error(std::move(*error_));
  }

 private:
  nb::object tick_;
  std::optional<nb::python_error> error_;
};

std::shared_ptr<LoadGenRun> run_watched(loadtest::SystemUnderTest& system, const Settings& settings, nb::object tick) {
  Watcher watcher(std::move(tick));
  std::shared_ptr<LoadGenRun> result;
  try {
    nb::gil_scoped_release free;
    result =
        loadgen::run_load(system, settings, [&watcher](const Progress& progress) { return watcher.check(progress); });
  } catch (const host::Failure&) {
    watcher.rethrow();  // who interrupts wants to see just that
    throw;
  }
  if (result->end() == End::kFinished) watcher.interrupt_again();
  watcher.rethrow();
  return result;
}

}  // namespace
}  // namespace lanewise::bindings

NB_MODULE(_loadgen, m) {
  using namespace lanewise::bindings;
  m.doc() = "MLCommons LoadGen without Python between its queries.";
  nb::module_::import_("lanewise._native");  // has the types of systems, and makes ProbeFailure of host::Failure
  bind_settings(m);
  bind_run(m);
  m.attr("VERSION") = mlperf::LoadgenVersion().c_str();
  m.def("run_load", &run_watched, "system"_a, "settings"_a, "tick"_a = nb::none(),
        "Run one load; `tick(issued, answered, late)` is called some 20 times a second. ProbeFailure, "
        "KeyboardInterrupt.");
}
