#include "host/parts.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "host/failure.hpp"
#include "host/memory.hpp"
#include "host/sysfs.hpp"

namespace lanewise::host {

namespace {

constexpr std::size_t kLeast = std::size_t{8} << 20;  // bytes that are worth a thread
constexpr std::size_t kMostThreads = 8;               // enough for the bandwidth of one node's memory

// The CPUs of a list such as "0-15,64-79"; none if the kernel does not say.
std::vector<int> cpus_of(int node) {
  const std::string list = first_line("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
  std::vector<int> cpus;
  for (const char* at = list.c_str(); *at != '\0'; at += *at == ',' ? 1 : 0) {
    char* end = nullptr;
    const long first = std::strtol(at, &end, 10);
    if (end == at) break;
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    for (long cpu = first; cpu <= last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    at = end;
  }
  return cpus;
}

bool has_one_node() { return first_line("/sys/devices/system/node/online").find_first_of("-,") == std::string::npos; }

void stay_on(const std::vector<int>& cpus) {
  try {
    pin_thread(cpus);
  } catch (const Failure&) {  // CPUs that this process may not use: slower, no less right
  }
}

}  // namespace

void in_parts(std::size_t bytes, int node, const std::function<void(std::size_t, std::size_t)>& work) {
  if (node == kAnyNode && (bytes < 2 * kLeast || !has_one_node())) return work(0, bytes);
  const std::vector<int> cpus = node == kAnyNode ? std::vector<int>() : cpus_of(node);
  const std::size_t available = cpus.empty() ? std::max(1U, std::thread::hardware_concurrency()) : cpus.size();
  const std::size_t most = std::min(kMostThreads, available);
  const std::size_t parts = std::clamp<std::size_t>(bytes / kLeast, 1, most);
  const std::size_t part = (bytes / parts + kLeast) / 4096 * 4096;
  std::vector<std::jthread> threads;
  for (std::size_t begin = 0; begin < bytes; begin += part) {
    const std::size_t end = std::min(begin + part, bytes);
    try {
      threads.emplace_back([&, begin, end] {
        stay_on(cpus);
        work(begin, end);
      });
    } catch (const std::system_error&) {  // no thread to be had: slower, no less right
      work(begin, end);
    }
  }
}

}  // namespace lanewise::host
