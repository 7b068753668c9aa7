// What is shared: resources with a capacity, and classes of identical flows that load them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lanewise::sim {

// The caller gave something that has no meaning; `hint` says what to do about it.
class BadInput : public std::invalid_argument {
 public:
  BadInput(const std::string& cause, std::string hint) : std::invalid_argument(cause), hint_(std::move(hint)) {}
  const std::string& hint() const noexcept { return hint_; }

 private:
  std::string hint_;
};

// A figure for a message: six digits.
std::string show(double value);

// One load: a flow running at rate x takes `coefficient * x` of `resource`.
struct Use {
  std::int32_t resource;
  double coefficient;
};

// A class of identical flows: `cap` bounds the rate of each flow (infinity: none).
struct FlowClass {
  std::vector<Use> uses;
  double weight = 1.0;
  double cap = 0.0;
};

// Checked resources and classes; throws BadInput when a figure is out of range or a class is unbounded.
class Network {
 public:
  Network(std::vector<double> capacities, std::vector<FlowClass> classes);

  const std::vector<double>& capacities() const noexcept { return capacities_; }
  // Uses are sorted by resource, without zeros, each resource once.
  const std::vector<FlowClass>& classes() const noexcept { return classes_; }

 private:
  void check_resources() const;
  void check_class(std::size_t index);

  std::vector<double> capacities_;
  std::vector<FlowClass> classes_;
};

}  // namespace lanewise::sim
