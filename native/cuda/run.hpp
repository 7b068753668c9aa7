// Lanes that start together behind a gate, again and again.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "cuda/engine.hpp"
#include "cuda/gate.hpp"
#include "cuda/lane.hpp"

namespace lanewise::cuda {

class Run {
 public:
  // Each lane's first item runs once, so that nothing is set up inside a timed run.
  Run(std::shared_ptr<Engine> engine, std::vector<std::unique_ptr<Lane>> lanes);
  ~Run() { close(); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Everything queued behind the closed gate, opened at once: of each lane, seconds from the release to each mark.
  std::vector<std::vector<double>> run();
  void verify();
  std::vector<std::map<int, std::size_t>> pages() const;
  // Other numbers of marks, and of copies before each of them (none: one).
  void resize(const std::vector<int>& marks, const std::vector<int>& each);
  void close();

 private:
  void check_open() const;
  void set_peers();
  void queue_all();

  std::shared_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  Gate* gate_;  // the engine's
};

std::unique_ptr<Run> prepare(const std::shared_ptr<Engine>& engine, const std::vector<Flow>& flows);

}  // namespace lanewise::cuda
