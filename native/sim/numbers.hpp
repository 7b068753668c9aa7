// Limits of figures and indices, for the files of sim and serve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace lanewise::sim {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Products of three figures between these stay inside a double, so no later step can overflow or make a NaN.
inline constexpr double kSmallest = 1e-60;
inline constexpr double kLargest = 1e60;

inline std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace lanewise::sim
