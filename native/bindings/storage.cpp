// Binds native/storage. What stops a measurement comes back as ProbeFailure(cause, hint).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "storage/runner.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lanewise::storage {
namespace {

using Chunk = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t>;

nb::ndarray<nb::numpy, float, nb::ndim<1>> to_numpy(std::vector<float>&& values) {
  auto* owned = new std::vector<float>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
  return {owned->data(), {owned->size()}, owner};
}

void bind_job(nb::module_& m) {
  nb::class_<Volume>(m, "StorageVolume", "Files that hold one volume, in stripes where there are several.")
      .def(
          "__init__",
          [](Volume* self, std::vector<std::uint32_t> files, std::uint64_t stripe, std::uint64_t bytes) {
            new (self) Volume{std::move(files), stripe, bytes};
          },
          "files"_a, "stripe"_a, "bytes"_a)
      .def_ro("files", &Volume::files)
      .def_ro("bytes", &Volume::bytes)
      .def(
          "pieces",
          [](const Volume& self, std::uint64_t offset, std::uint64_t bytes) {
            std::vector<Piece> pieces;
            self.pieces(offset, bytes, pieces);
            std::vector<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t>> rows;
            for (const Piece& piece : pieces) rows.emplace_back(piece.file, piece.offset, piece.at, piece.bytes);
            return rows;
          },
          "offset"_a, "bytes"_a, "File, offset in it, place in the buffer and bytes of each piece of an I/O.");
  nb::class_<Job>(m, "StorageJob", "What is to be read or written.")
      .def(nb::init<>())
      .def_rw("volumes", &Job::volumes)
      .def_rw("files", &Job::files)
      .def_rw("second_files", &Job::second_files)
      .def_rw("names", &Job::names)
      .def_rw("io", &Job::io)
      .def_rw("threads", &Job::threads)
      .def_rw("depth", &Job::depth)
      .def_rw("engine", &Job::engine)
      .def_rw("bounce", &Job::bounce)
      .def_rw("node", &Job::node)
      .def_rw("gpu", &Job::gpu)
      .def_rw("cuda", &Job::cuda)
      .def_rw("cufile", &Job::cufile)
      .def_rw("cpus", &Job::cpus)
      .def(
          "load",
          [](Job& self, const std::vector<std::tuple<int, std::uint64_t>>& targets, const std::vector<Chunk>& chunks) {
            Volume volume;
            for (const auto& [gpu, bytes] : targets) self.targets.push_back({gpu, bytes});
            for (const auto& [file, offset, bytes, target, at] : chunks) {
              volume.chunks.push_back({file, offset, 0, bytes});
              self.places.push_back({target, at});
              volume.bytes += bytes;
            }
            for (std::uint32_t file = 0; file < self.files.size(); ++file) volume.files.push_back(file);
            self.volumes = {std::move(volume)};
          },
          "targets"_a, "chunks"_a,
          "Reads these chunks (file, offset, bytes, target, place in it) to stay in targets (GPU or -1, bytes).");
}

void bind_task(nb::module_& m) {
  nb::enum_<Engine>(m, "StorageEngine")
      .value("RING", Engine::kRing)
      .value("SYNC", Engine::kSync)
      .value("CUFILE", Engine::kCuFile);
  nb::enum_<Data>(m, "StorageData")
      .value("ANY", Data::kAny)
      .value("FILLED", Data::kFilled)
      .value("STAMPED", Data::kStamped)
      .value("REREAD", Data::kReread);
  nb::class_<Task>(m, "StorageTask", "One go over the data.")
      .def(
          "__init__",
          [](Task* self, std::uint64_t count, std::uint64_t most, double seconds, bool write, bool random,
             std::uint64_t seed, std::uint64_t salt, Data data, bool read,
             bool keep) { new (self) Task{count, most, seconds, write, random, seed, salt, data, read, keep}; },
          "count"_a, "most"_a = 0, "seconds"_a = 0.0, "write"_a = false, "random"_a = false, "seed"_a = 0, "salt"_a = 0,
          "data"_a = Data::kAny, "read"_a = true, "keep"_a = true);
  nb::class_<Outcome>(m, "StorageOutcome")
      .def_ro("window", &Outcome::window)
      .def_ro("makespan", &Outcome::makespan)
      .def_ro("in_window", &Outcome::in_window)
      .def_ro("bytes", &Outcome::bytes)
      .def_prop_ro(
          "times", [](const Outcome& self) { return to_numpy(std::vector<float>(self.times)); }, nb::rv_policy::move);
}

}  // namespace
}  // namespace lanewise::storage

namespace lanewise::bindings {

void bind_storage(nb::module_& m) {
  using namespace storage;
  bind_job(m);
  bind_task(m);
  nb::class_<Runner>(m, "StorageRunner", "Buffers, threads and files of one job; ProbeFailure says what went wrong.")
      .def(nb::init<Job>(), "job"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("start", &Runner::start, "task"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("stop", &Runner::stop)
      .def("finish", &Runner::finish, nb::call_guard<nb::gil_scoped_release>())
      .def("nodes", &Runner::nodes)
      .def_prop_ro("running", &Runner::running)
      .def_prop_ro("seconds", &Runner::seconds)
      .def_prop_ro("bytes", &Runner::bytes)
      .def_prop_ro("how", &Runner::how);
  m.def("io_uring_missing", &io_uring_missing, "Why there is no io_uring here; empty where there is.");
  m.def("in_page_cache", &in_page_cache, "file"_a, "bytes"_a, nb::call_guard<nb::gil_scoped_release>(),
        "How much of a file lies in the page cache, 0 .. 1; below zero where the kernel does not say.");
}

}  // namespace lanewise::bindings
