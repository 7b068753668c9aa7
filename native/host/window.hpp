// The window in which all threads run, and what each moved in it.
#pragma once

#include <vector>

namespace lanewise::host {

// `marks` of one thread: when it began and when each of its blocks was done, in s, rising.
using Marks = std::vector<double>;

struct Window {
  double seconds = 0.0;       // from the last to begin to the first to end; 0 if they did not run together
  std::vector<double> bytes;  // of each thread in the window; a block that reaches over an edge counts in proportion
};

Window common_window(const std::vector<Marks>& marks, double block_bytes);

}  // namespace lanewise::host
