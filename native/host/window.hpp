// The window in which all threads run, and what each moved in it.
#pragma once

#include <vector>

namespace lanewise::host {

// `timestamps` of one thread: when it began and when each of its blocks was done, in s, rising.
using Timestamps = std::vector<double>;

struct Window {
  double seconds = 0.0;       // from the last to begin to the first to end; 0 if they did not run together
  std::vector<double> bytes;  // of each thread in the window; a block that reaches over an edge counts in proportion
};

Window common_window(const std::vector<Timestamps>& timestamps, double block_bytes);

}  // namespace lanewise::host
