// What stops a measurement, in words for people: the cause, and what to do next.
#pragma once

#include <stdexcept>
#include <string>

namespace lanewise::host {

class Failure : public std::runtime_error {
 public:
  Failure(const std::string& cause, std::string next) : std::runtime_error(cause), hint_(std::move(next)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

// A failed system call: "mbind: Operation not permitted".
Failure system_failure(const std::string& call, int error, const std::string& hint);

}  // namespace lanewise::host
