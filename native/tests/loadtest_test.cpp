// The ring between those who issue queries and the thread that forms batches.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <thread>
#include <vector>

#include "loadtest/query_ring.hpp"

namespace lanewise::loadtest {
namespace {

TEST(QueryRing, HoldsNoMoreThanItHasRoomFor) {
  QueryRing ring(4);
  const std::array<Query, 6> queries{{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}}};
  EXPECT_EQ(ring.push(queries, 1), 4U);
  EXPECT_EQ(ring.push(queries, 1), 0U);
  std::array<QueuedQuery, 3> out;
  EXPECT_EQ(ring.pop(out), 3U);
  EXPECT_EQ(out[2].id, 2U);
  EXPECT_EQ(ring.push(queries, 2), 3U);
}

TEST(QueryRing, EveryQueryComesOnceAndInTheOrderOfItsProducer) {
  constexpr std::uint64_t kEach = 20'000, kProducers = 3;
  QueryRing ring(64);
  std::vector<std::jthread> producers;
  for (std::uint64_t producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&ring, producer] {
      for (std::uint64_t i = 0; i < kEach;) {
        const Query query{producer << 32 | i, 0};
        if (ring.push({&query, 1}, 0) == 1) {
          ++i;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  std::array<std::uint64_t, kProducers> next{};
  std::array<QueuedQuery, 16> batch;
  for (std::uint64_t count = 0; count < kEach * kProducers;) {
    ring.wait(count + 1, std::numeric_limits<std::int64_t>::max(), [] { return false; });
    const std::size_t got = ring.pop(batch);
    for (std::size_t i = 0; i < got; ++i) {
      ASSERT_EQ(batch[i].id & 0xFFFFFFFF, next[batch[i].id >> 32]++);
    }
    count += got;
  }
}

TEST(QueryRing, ADeadlineThatIsPastEndsTheWait) {
  QueryRing ring(4);
  ring.wait(1, 0, [] { return false; });
  EXPECT_EQ(ring.tail(), 0U);
}

}  // namespace
}  // namespace lanewise::loadtest
