// Latencies as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

#include "loadtest/latencies.hpp"

namespace lanewise::bindings {

// Percentiles, mean and largest in s, by name.
inline nanobind::dict latency_dict(const loadtest::Latencies& latencies) {
  nanobind::dict values;
  values["p50"] = latencies.histogram().percentile(0.5);
  values["p90"] = latencies.histogram().percentile(0.9);
  values["p99"] = latencies.histogram().percentile(0.99);
  values["p99.9"] = latencies.histogram().percentile(0.999);
  values["mean"] = latencies.mean();
  values["max"] = latencies.histogram().largest();
  return values;
}

}  // namespace lanewise::bindings
