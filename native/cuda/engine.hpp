// The driver with the GPUs in use and the peer access switched between them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda/gate.hpp"
#include "cuda/gpu.hpp"
#include "cuda/pool.hpp"

namespace lanewise::cuda {

// What the driver says of a GPU without a context on it.
struct DeviceFacts {
  int ordinal = 0;
  std::string name;
  std::string pci;  // 0000:1b:00.0
  int numa = -1;    // -1: unknown
  std::size_t memory = 0;
  int multiprocessors = 0;
  int copy_engines = 0;
  std::pair<int, int> capability;
};

class Engine {
 public:
  explicit Engine(const std::string& library, const std::string& module_loading = "EAGER");
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Driver& driver() const { return *driver_; }
  const std::vector<DeviceFacts>& devices() const { return devices_; }

  // The GPU with its context, made at the first use and kept.
  const Gpu& gpu(int ordinal);

  bool can_peer(int device, int peer) const;
  // Peer access between two GPUs, in both directions; host::Failure where it cannot be.
  void set_peers(int a, int b, bool on);

  Pool& pool() { return pool_; }

  // The gate that all timed work waits at; created at the first use.
  Gate& gate(const Gpu& registrar);

  // What a GPU's memory has room for.
  std::size_t free_bytes(int ordinal) { return gpu(ordinal).context()->free_bytes() + pool_.free_bytes(ordinal); }

  // Whether the driver queues copies that it stages through host memory behind a closed gate; else it blocks until
  // their turn, and they have to start without a gate. Known once the first of them has blocked.
  bool holds_staged() const { return holds_staged_; }
  void release_staged() { holds_staged_ = false; }

  // One at a time: runs share GPUs, the peer access between them, buffers and the gate.
  std::mutex& turn() { return turn_; }

 private:
  void enable(int from, int to);
  void disable(int from, int to);

  std::shared_ptr<const Driver> driver_;
  std::vector<DeviceFacts> devices_;
  std::map<int, Gpu> gpus_;
  std::set<std::pair<int, int>> enabled_;  // by us
  Pool pool_;
  std::unique_ptr<Gate> gate_;
  std::atomic<bool> holds_staged_ = true;
  std::mutex turn_;
};

}  // namespace lanewise::cuda
