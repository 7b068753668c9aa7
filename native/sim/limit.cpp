// What is named as the limit of a class.
#include <algorithm>

#include "sim/maxmin.hpp"
#include "sim/numbers.hpp"

namespace lanewise::sim {
namespace {

// Two limits as close to binding as this are both met: which one is named must not hang on rounding.
constexpr double kSame = 1e-11;

}  // namespace

std::int32_t MaxMin::limit(std::size_t k) {
  const double level = level_of_class(k);
  if (rate(k) * kTie >= classes_[k].cap) return kOwnCap;
  const auto& uses = network_.classes()[k].uses;
  double least = kInfinity;
  for (const Use& use : uses) least = std::min(least, shortfall(use.resource, level));
  auto use = uses.begin();
  while (shortfall(use->resource, level) > least + kSame) ++use;
  return use->resource;
}

// How far a resource is from holding a class of this level: it is full, and nobody's level is higher.
double MaxMin::shortfall(std::int32_t r, double level) {
  if (levels_[at(r)].found != solves_) look_at(r);
  return std::max(levels_[at(r)].spare, 1.0 - level / levels_[at(r)].top);
}

void MaxMin::look_at(std::int32_t r) {
  const Resource& resource = resources_[at(r)];
  Level& known = levels_[at(r)];
  known.found = solves_;
  known.top = 0.0;
  known.spare = resource.left / resource.capacity;
  for (auto i = resource.first; i < resource.first + resource.users; ++i) {
    known.top = std::max(known.top, classes_[at(users_[at(i)].flow_class)].level);
  }
  for (const Taker& taker : dominated_[at(r)]) {
    const std::size_t k = at(taker.flow_class);
    known.spare -= classes_[k].count * rate(k) * taker.coefficient / resource.capacity;
    known.top = std::max(known.top, level_of_class(k));
  }
}

}  // namespace lanewise::sim
