// A queue pair's address as Python carries it to the other side, and checked where it comes back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "host/failure.hpp"
#include "network/verbs_address.hpp"

namespace lanewise::network {

inline nanobind::dict to_dict(const VerbsAddress& address) {
  nanobind::dict out;
  out["gid"] = address.gid;
  out["lid"] = address.lid;
  out["mtu"] = address.mtu;
  out["reads"] = address.reads;
  out["psn"] = address.psn;
  out["memory"] = address.memory;
  out["key"] = address.key;
  out["pairs"] = address.pairs;
  return out;
}

// A value of the other side's address; host::Failure where it is missing, of another type or too large.
template <typename T>
void read_value(const nanobind::dict& address, const char* key, T& value) {
  if (address.contains(key) && nanobind::try_cast<T>(address[key], value, false)) return;
  throw host::Failure(std::string("the other side's RDMA address has no readable ") + key,
                      "use the same version of Lanewise on both");
}

inline VerbsAddress to_address(const nanobind::dict& address) {
  VerbsAddress out;
  read_value(address, "gid", out.gid);
  read_value(address, "lid", out.lid);
  read_value(address, "mtu", out.mtu);
  read_value(address, "reads", out.reads);
  read_value(address, "psn", out.psn);
  read_value(address, "memory", out.memory);
  read_value(address, "key", out.key);
  read_value(address, "pairs", out.pairs);
  return out;
}

}  // namespace lanewise::network
