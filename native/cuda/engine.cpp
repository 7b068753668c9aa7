#include "cuda/engine.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "host/failure.hpp"
#include "host/sysfs.hpp"

namespace lanewise::cuda {

namespace {

int attribute(const Driver& driver, CUdevice device, int id, int unknown) {
  int value = 0;
  return driver.calls().cuDeviceGetAttribute(&value, id, device) == kSuccess ? value : unknown;
}

// The driver's word since CUDA 12.2, before that the kernel's.
int numa_node(const Driver& driver, CUdevice device, const std::string& pci) {
  const int node = attribute(driver, device, kHostNumaId, -1);
  if (node >= 0) return node;
  const std::string line = host::first_line("/sys/bus/pci/devices/" + pci + "/numa_node");
  return line.empty() ? node : static_cast<int>(std::strtol(line.c_str(), nullptr, 10));
}

DeviceFacts facts_of(const Driver& driver, int ordinal) {
  const Calls& calls = driver.calls();
  const std::string where = "GPU " + std::to_string(ordinal);
  CUdevice device = 0;
  driver.check(calls.cuDeviceGet(&device, ordinal), "cuDeviceGet", where);
  std::array<char, 256> text{};
  DeviceFacts facts;
  facts.ordinal = ordinal;
  driver.check(calls.cuDeviceGetName(text.data(), text.size(), device), "cuDeviceGetName", where);
  facts.name = text.data();
  driver.check(calls.cuDeviceGetPCIBusId(text.data(), text.size(), device), "cuDeviceGetPCIBusId", where);
  facts.pci = text.data();
  std::ranges::transform(facts.pci, facts.pci.begin(), [](unsigned char c) { return std::tolower(c); });
  driver.check(calls.cuDeviceTotalMem(&facts.memory, device), "cuDeviceTotalMem", where);
  facts.numa = numa_node(driver, device, facts.pci);
  facts.multiprocessors = attribute(driver, device, kMultiprocessorCount, 0);
  facts.copy_engines = attribute(driver, device, kAsyncEngineCount, 0);
  facts.capability = {attribute(driver, device, kCapabilityMajor, 0), attribute(driver, device, kCapabilityMinor, 0)};
  return facts;
}

CUresult switch_off(const Context& from, const Context& to) {
  const Calls& calls = from.calls();
  if (const CUresult result = calls.cuCtxPushCurrent(from.handle()); result != kSuccess) return result;
  const CUresult result = calls.cuCtxDisablePeerAccess(to.handle());
  CUcontext popped = nullptr;
  calls.cuCtxPopCurrent(&popped);
  return result;
}

}  // namespace

Engine::Engine(const std::string& library, const std::string& module_loading)
    : driver_(std::make_shared<Driver>(library, module_loading)) {
  for (int ordinal = 0; ordinal < driver_->device_count(); ++ordinal) devices_.push_back(facts_of(*driver_, ordinal));
}

Engine::~Engine() {
  for (const auto& [from, to] : enabled_) switch_off(*gpus_.at(from).context(), *gpus_.at(to).context());
}

const Gpu& Engine::gpu(int ordinal) {
  const auto gpu = gpus_.find(ordinal);
  return gpu != gpus_.end() ? gpu->second : gpus_.try_emplace(ordinal, driver_, ordinal).first->second;
}

Gate& Engine::gate(const Gpu& registrar) {
  if (gate_ == nullptr) gate_ = std::make_unique<Gate>(registrar.context());
  return *gate_;
}

bool Engine::can_peer(int device, int peer) const {
  std::array<CUdevice, 2> handles{};
  const std::array<int, 2> ordinals{device, peer};
  for (std::size_t i = 0; i < 2; ++i) {
    driver_->check(driver_->calls().cuDeviceGet(&handles[i], ordinals[i]), "cuDeviceGet",
                   "GPU " + std::to_string(ordinals[i]));
  }
  int can = 0;
  driver_->check(driver_->calls().cuDeviceCanAccessPeer(&can, handles[0], handles[1]), "cuDeviceCanAccessPeer",
                 "GPU " + std::to_string(device) + " to GPU " + std::to_string(peer));
  return can != 0;
}

void Engine::set_peers(int a, int b, bool on) {
  if (a == b) return;
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    if (on) {
      enable(from, to);
    } else {
      disable(from, to);
    }
  }
}

void Engine::enable(int from, int to) {
  if (enabled_.contains({from, to})) return;
  const std::string where = "GPU " + std::to_string(from) + " to GPU " + std::to_string(to);
  if (!can_peer(from, to)) {
    throw host::Failure("no peer access from " + where,
                        "measure these two with P2P off; nvidia-smi topo -p2p r says why they are no peers");
  }
  const Gpu& gpu_from = gpu(from);
  const Gpu& gpu_to = gpu(to);
  const Current current(*gpu_from.context());
  const CUresult result = driver_->calls().cuCtxEnablePeerAccess(gpu_to.context()->handle(), 0);
  if (result == kPeerAccessAlreadyEnabled) return;  // somebody else's: not ours to give back
  driver_->check(result, "cuCtxEnablePeerAccess", where);
  enabled_.insert({from, to});
}

// Also where somebody else enabled it: a copy that must be staged has to be.
void Engine::disable(int from, int to) {
  const CUresult result = switch_off(*gpu(from).context(), *gpu(to).context());
  if (result != kPeerAccessNotEnabled) {
    driver_->check(result, "cuCtxDisablePeerAccess", "GPU " + std::to_string(from) + " to GPU " + std::to_string(to));
  }
  enabled_.erase({from, to});
}

}  // namespace lanewise::cuda
