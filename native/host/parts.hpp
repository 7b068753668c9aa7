// Work on large buffers, in parts side by side.
#pragma once

#include <cstddef>
#include <functional>

namespace lanewise::host {

// Calls work(begin, end) for parts that make up [0, bytes), begins on pages, by threads on a NUMA node's CPUs as far as
// those are known and allowed. kAnyNode: in the calling thread where there are several nodes, so that all pages
// are placed on the same one.
void in_parts(std::size_t bytes, int node, const std::function<void(std::size_t, std::size_t)>& work);

}  // namespace lanewise::host
