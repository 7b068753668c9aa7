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

// A class of identical flows: `cap` bounds the rate of each flow (infinity: none). Of the classes of one `sender` one
// has its turn at a time (-1: all the time).
struct FlowClass {
  std::vector<Use> uses;
  double weight = 1.0;
  double cap = 0.0;
  std::int32_t sender = -1;
};

// How classes of one sender take turns: `bytes` of each flow, then the next class. Of the turn that is under way when a
// second class comes 1 - frac(sender * apart) is left, so that senders do not go in step (0: they do).
struct TurnRule {
  double bytes = 1.0;
  double apart = 0.0;
};

// Checked resources and classes; throws BadInput when a figure is out of range or a class is unbounded.
class Network {
 public:
  Network(std::vector<double> capacities, std::vector<FlowClass> classes, TurnRule turns = {});

  const std::vector<double>& capacities() const noexcept { return capacities_; }
  // Uses are sorted by resource, without zeros, each resource once.
  const std::vector<FlowClass>& classes() const noexcept { return classes_; }
  const TurnRule& turns() const noexcept { return turns_; }

 private:
  void check_resources() const;
  void check_class(std::size_t index);

  std::vector<double> capacities_;
  std::vector<FlowClass> classes_;
  TurnRule turns_;
};

}  // namespace lanewise::sim
