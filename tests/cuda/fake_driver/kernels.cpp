// Modules, and Lanewise's kernels run by the CPU.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "cuda/pattern.hpp"
#include "world.hpp"

using namespace fake;

namespace {

const char* const kNames[] = {"lanewise_spin", "lanewise_copy",    "lanewise_gather",
                              "lanewise_fill", "lanewise_compare", "lanewise_chase",
                              "lanewise_copy_both", "lanewise_copy_pieces", "lanewise_hold"};

struct Launched {
  unsigned blocks, blocks_y;
  void** parameters;
  template <class T>
  T get(int i) const {
    T value;
    std::memcpy(&value, parameters[i], sizeof value);
    return value;
  }
  std::uint64_t number(int i) const { return get<std::uint64_t>(i); }
};

std::uint32_t load(std::uint64_t at) {
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at)).load();
}

// A kernel that touches what its GPU does not reach breaks the context for good.
bool touches(Stream& on, std::uint64_t at, std::size_t bytes) {
  if (reaches(on.device, holder(at, bytes))) return true;
  World& w = world();
  const std::scoped_lock hold(w.lock);
  w.sticky = kIllegalAddress;
  return false;
}

void spin(Stream& on, std::uint64_t open, std::uint64_t timed_out, double most) {
  World& w = world();
  if (w.config.hold > 0) most = w.config.hold;
  if (!touches(on, open, 4)) return;
  const auto start = std::chrono::steady_clock::now();
  while (w.config.spin_timeout || load(open) == 0) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (w.config.spin_timeout || passed.count() > most) {
      std::atomic_ref(*reinterpret_cast<std::uint32_t*>(timed_out)).store(1);
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void fill(std::uint64_t at, std::uint64_t bytes, std::uint64_t seed) {
  auto* data = reinterpret_cast<unsigned char*>(at);
  for (std::uint64_t i = 0; i < bytes; ++i) data[i] = pattern_byte(seed, i);
}

void compare(std::uint64_t at, std::uint64_t bytes, std::uint64_t seed, std::uint64_t first) {
  const auto* data = reinterpret_cast<const unsigned char*>(at);
  auto& found = *reinterpret_cast<std::uint64_t*>(first);
  for (std::uint64_t i = 0; i < bytes; ++i) {
    if (data[i] != pattern_byte(seed, i)) {
      found = std::min(found, i);
      return;
    }
  }
}

std::function<void(Stream&)> chase(const Launched& l) {
  return [start = l.number(0), steps = l.number(1), chaser = l.get<unsigned>(2), end = l.number(3),
          blocks = l.blocks](Stream& on) {
    if (chaser >= blocks || !touches(on, start, 8)) return;
    const int of = holder(start, 8);
    std::uint64_t at = start;
    for (std::uint64_t i = 0; i < steps; ++i) at = *reinterpret_cast<std::uint64_t*>(at);
    *reinterpret_cast<std::uint64_t*>(end) = at;
    pass(on, static_cast<double>(steps) * (of == -1 ? 1000e-9 : of == on.device ? 300e-9 : 800e-9));
  };
}

std::function<void(Stream&)> gather(const Launched& l) {
  return [to = l.number(0), library = l.number(1), picks = l.number(2), bytes = 16 * l.number(3),
          batch = l.blocks_y](Stream& on) {
    for (unsigned i = 0; i < batch; ++i) {
      const std::uint64_t from = library + load(picks + 4 * i) * bytes;
      if (!touches(on, from, bytes) || !touches(on, to + i * bytes, bytes)) return;
      move(on, to + i * bytes, from, bytes);
    }
  };
}

std::function<void(Stream&)> copy_pieces(const Launched& l) {
  return [to = l.number(0), from = l.number(1), to_places = l.number(2), from_places = l.number(3),
          count = l.number(4), bytes = 16 * l.number(5)](Stream& on) {
    if (!touches(on, to_places, 4 * count) || !touches(on, from_places, 4 * count)) return;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t source = from + load(from_places + 4 * i) * bytes;
      const std::uint64_t target = to + load(to_places + 4 * i) * bytes;
      if (!touches(on, source, bytes) || !touches(on, target, bytes)) return;
      move(on, target, source, bytes);
    }
  };
}

std::function<void(Stream&)> copy_both(const Launched& l) {
  return [to = l.number(0), from = l.number(1), back_to = l.number(2), back_from = l.number(3), bytes = l.number(4),
          passes = l.get<unsigned>(5)](Stream& on) {
    for (const std::uint64_t at : {to, from, back_to, back_from}) {
      if (!touches(on, at, bytes)) return;
    }
    for (unsigned i = 0; i < passes; ++i) {
      const double start = on.now;
      move(on, to, from, bytes);
      const double there = on.now;
      on.now = start;
      move(on, back_to, back_from, bytes);
      on.now = std::max(on.now, there);
    }
  };
}

std::function<void(Stream&)> work_of(int kernel, const Launched& l) {
  switch (kernel) {
    case 0:
      return [open = l.number(0), late = l.number(1), most = static_cast<double>(l.number(2)) * 1e-9](Stream& on) {
        spin(on, open, late, most);
        World& w = world();
        const std::scoped_lock hold(w.lock);
        on.now = std::max(on.now, w.now);
      };
    case 1:
      return [to = l.number(0), from = l.number(1), bytes = l.number(2), passes = l.get<unsigned>(3)](Stream& on) {
        for (unsigned i = 0; i < passes; ++i) {
          if (touches(on, to, bytes) && touches(on, from, bytes)) move(on, to, from, bytes);
        }
      };
    case 2:
      return gather(l);
    case 3:
      return [at = l.number(0), bytes = l.number(1), seed = l.number(2)](Stream& on) {
        if (touches(on, at, bytes)) fill(at, bytes, seed);
      };
    case 4:
      return [at = l.number(0), bytes = l.number(1), seed = l.number(2), first = l.number(3)](Stream& on) {
        if (touches(on, at, bytes) && touches(on, first, 8)) compare(at, bytes, seed, first);
      };
    case 5:
      return chase(l);
    case 6:
      return copy_both(l);
    case 7:
      return copy_pieces(l);
    default:
      return [ns = l.number(0)](Stream& on) { pass(on, static_cast<double>(ns) * 1e-9); };
  }
}

}  // namespace

extern "C" {

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, int* options, void** values) {
  FAKE(cuModuleLoadDataEx);
  if (current() == -2) return kInvalidContext;
  if (world().config.jit_error) {
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == kJitErrorLog) std::strcpy(static_cast<char*>(values[i]), "ptxas fatal: planted\nmore");
    }
    return kInvalidPtx;
  }
  for (const char* name : kNames) {
    if (std::strstr(static_cast<const char*>(image), name) == nullptr) return kInvalidPtx;
  }
  auto* made = new int(current());
  World& w = world();
  const std::scoped_lock hold(w.lock);
  w.modules.insert(made);
  *module = reinterpret_cast<CUmodule>(made);
  return kSuccess;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  FAKE(cuModuleGetFunction);
  for (std::uintptr_t i = 0; i < std::size(kNames); ++i) {
    if (std::strcmp(name, kNames[i]) == 0) {
      *function = reinterpret_cast<CUfunction>(i + 1);
      return kSuccess;
    }
  }
  return kNotFound;
}

CUresult cuFuncGetAttribute(int* value, int, CUfunction) {
  FAKE(cuFuncGetAttribute);
  *value = 32;
  return kSuccess;
}

CUresult cuModuleUnload(CUmodule module) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  auto* const handle = reinterpret_cast<int*>(module);
  if (w.modules.erase(handle) == 0) return kInvalidHandle;
  delete handle;
  return kSuccess;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned, unsigned block_x, unsigned,
                        unsigned, unsigned, CUstream stream, void** parameters, void**) {
  FAKE(cuLaunchKernel);
  if (block_x == 0 || block_x > 1024 || grid_x == 0) return kInvalidValue;
  const auto kernel = static_cast<int>(reinterpret_cast<std::uintptr_t>(function)) - 1;
  return submit(stream, work_of(kernel, {grid_x, grid_y, parameters}));
}
}
