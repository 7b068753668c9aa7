// Containers that grow, and variates that are the same on every machine.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <random>
#include <vector>

#include "serve/random.hpp"
#include "serve/ring.hpp"
#include "serve/stable_vector.hpp"

namespace lanewise::serve {
namespace {

TEST(Ring, IsAQueueHoweverItGrowsAndWraps) {
  Ring<int> ring;
  std::deque<int> queue;
  std::mt19937_64 bits(3);
  for (int i = 0; i < 20'000; ++i) {
    if (queue.empty() || bits() % 5 < 3) {
      ring.push(i);
      queue.push_back(i);
    } else {
      ASSERT_EQ(ring.front(), queue.front());
      ASSERT_EQ(ring.pop(), queue.front());
      queue.pop_front();
    }
    ASSERT_EQ(ring.size(), queue.size());
    ASSERT_EQ(ring.empty(), queue.empty());
  }
}

TEST(StableVector, KeepsElementsWhereTheyAre) {
  StableVector<int> vector;
  std::vector<int*> places;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(vector.size(), places.size());
    vector.emplace_back();
    places.push_back(&vector[places.size()]);
    *places.back() = i;
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    ASSERT_EQ(&vector[i], places[i]);
    ASSERT_EQ(vector[i], static_cast<int>(i));
  }
}

TEST(PortableLog, IsTheLogarithm) {
  std::mt19937_64 bits(5);
  for (int i = 0; i < 100'000; ++i) {
    const double x = std::ldexp(static_cast<double>(bits() >> 11) + 1.0, static_cast<int>(bits() % 200) - 150);
    ASSERT_NEAR(portable_log(x), std::log(x), 4e-16 * std::max(1.0, std::abs(std::log(x)))) << x;
  }
}

TEST(Random, StreamsOfOneSeedDiffer) {
  Random one(1, 0), same(1, 0), other(1, 1);
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    const double value = one.uniform();
    ASSERT_GT(value, 0.0);
    ASSERT_LE(value, 1.0);
    ASSERT_EQ(value, same.uniform());
    equal += value == other.uniform() ? 1 : 0;
  }
  EXPECT_EQ(equal, 0);
}

TEST(Random, ExponentialVariatesDrawnAheadAreThoseOfTheStreamInItsOrder) {
  Random drawn(7, 2), bits(7, 2);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(drawn.exponential(0.5), -0.5 * portable_log(bits.uniform())) << i;
}

}  // namespace
}  // namespace lanewise::serve
