// Copy streams that start together behind a gate, again and again.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "cuda/copy_stream.hpp"
#include "cuda/engine.hpp"
#include "cuda/gate.hpp"

namespace lanewise::cuda {

class Run {
 public:
  // Each stream's first item runs once, so that nothing is set up inside a timed run.
  Run(std::shared_ptr<Engine> engine, std::vector<std::unique_ptr<CopyStream>> streams);
  ~Run() { close(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Everything queued behind the closed gate, opened at once: for each stream the timestamps, in seconds from the
  // release.
  std::vector<std::vector<double>> run();
  void verify();
  std::vector<std::map<int, std::size_t>> pages() const;
  // Other numbers of timestamps, and of copies before each of them (none: one).
  void resize(const std::vector<int>& timestamps, const std::vector<int>& per_timestamp);
  void close();

 private:
  void check_open() const;
  void set_peers();
  void queue_all();

  std::shared_ptr<Engine> engine_;
  std::vector<std::unique_ptr<CopyStream>> streams_;
  Gate* gate_;  // the engine's
};

std::unique_ptr<Run> prepare(const std::shared_ptr<Engine>& engine, const std::vector<Flow>& flows);

}  // namespace lanewise::cuda
