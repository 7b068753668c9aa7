// The ring between those who issue queries and the thread that forms batches, and whole systems under test on CPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "host/failure.hpp"
#include "loadtest/batching_system.hpp"
#include "loadtest/cpu_copier_and_engine.hpp"
#include "loadtest/crc32.hpp"
#include "loadtest/query_ring.hpp"
#include "loadtest/replay.hpp"

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
    ring.wait(count + 1, kNever, [] { return false; });
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

constexpr std::size_t kSamples = 32, kBytes = 100;
constexpr std::int64_t kMillisecond = 1'000'000;

// Fails at the batch of that number.
class FailingEngine : public InferenceEngine {
 public:
  explicit FailingEngine(int batch) : left_(batch) {}
  void prepare(std::size_t, std::size_t) override {}
  void infer(const Batch&, std::span<Answer>) override {
    if (left_.fetch_sub(1) == 1) throw host::Failure("no such layer", "choose another model");
  }

 private:
  std::atomic<int> left_;
};

// Two CPUs, each with its queue; all samples are loaded. An engine that fails if `failing_batch` is not 0.
std::unique_ptr<BatchingSystem> two_cpus(const QueueOptions& options, ServiceTime service, int failing_batch = 0) {
  const MakeQueueParts parts = [=](SampleLibrary& library) {
    QueueParts made{std::make_unique<CpuCopier>(library, host::kAnyNode),
                    std::make_unique<SyntheticCpuEngine>(service)};
    if (failing_batch != 0) made.engine = std::make_unique<FailingEngine>(failing_batch);
    return made;
  };
  SampleLibrary library(kSamples, kSamples, kBytes, host_memory(), fill_synthetic);
  auto system = std::make_unique<BatchingSystem>(options, Balance::kLeastOutstanding,
                                                 std::make_unique<QueueContext>(std::move(library), 8, options.batch),
                                                 std::vector{parts, parts});
  std::vector<std::uint64_t> samples(kSamples);
  for (std::size_t i = 0; i < kSamples; ++i) samples[i] = i;
  system->load(samples);
  return system;
}

std::vector<std::uint64_t> samples_in_turn(std::size_t count) {
  std::vector<std::uint64_t> samples(count);
  for (std::size_t i = 0; i < count; ++i) samples[i] = i % kSamples;
  return samples;
}

bool each_answered_once(const ReplayResult& result) {
  return std::ranges::all_of(result.answers, [](std::uint32_t count) { return count == 1; });
}

TEST(BatchingSystem, AnswersEachQueryOnceWithTheChecksumOfItsSample) {
  constexpr std::size_t kCount = 2000;
  // Few may wait: the issuing thread meets full queues.
  const auto system =
      two_cpus({.batch = 4, .timeout = kMillisecond, .streams = 2, .most_waiting = 16, .checksum = true},
               {.batch = 10'000, .query = 1000});
  const std::vector<std::uint64_t> samples = samples_in_turn(kCount);
  for (const bool coalesce : {false, true}) {
    const ReplayResult result =
        replay(*system, std::vector<std::int64_t>(kCount), samples, {.coalesce = coalesce, .keep = true}, [] {});
    EXPECT_EQ(result.failure, "");
    EXPECT_TRUE(each_answered_once(result));
    for (std::size_t i = 0; i < kCount; ++i) {
      std::array<std::byte, kBytes> bytes;
      fill_synthetic(samples[i], bytes);
      const std::uint32_t sum = crc32(bytes.data(), bytes.size());
      ASSERT_EQ(result.data[i], std::string(reinterpret_cast<const char*>(&sum), sizeof sum));
    }
    const Statistics statistics = system->statistics();
    EXPECT_EQ(statistics.stages[kTotal].count(), std::int64_t{kCount});
    EXPECT_EQ(statistics.bytes, kCount * kBytes);
    EXPECT_EQ(system->trace().size(), 8U);
  }
}

TEST(BatchingSystem, TakesQueriesOfSeveralThreadsAndTellsStatisticsMeanwhile) {
  constexpr std::size_t kEach = 500, kProducers = 3;
  const auto system =
      two_cpus({.batch = 8, .timeout = kMillisecond, .streams = 3, .most_waiting = 64, .checksum = false},
               {.batch = 5000, .query = 0});
  std::vector<std::atomic<int>> answers(kEach * kProducers);
  std::atomic<std::size_t> answered = 0;
  system->start([&](std::span<const Answer> batch) {
    for (const Answer& answer : batch) ++answers[answer.id];
    answered += batch.size();
  });
  {
    std::vector<std::jthread> producers;
    for (std::size_t producer = 0; producer < kProducers; ++producer) {
      producers.emplace_back([&system, producer] {
        for (std::size_t i = 0; i < kEach; ++i) {
          const Query query{producer * kEach + i, i % kSamples};
          system->issue({&query, 1});
        }
      });
    }
    while (answered < kEach) EXPECT_LE(system->statistics().stages[kTotal].count(), std::int64_t{kEach * kProducers});
  }
  system->stop();  // answers what waits
  EXPECT_TRUE(std::ranges::all_of(answers, [](const std::atomic<int>& count) { return count == 1; }));
}

TEST(BatchingSystem, FlushReleasesBatchesThatWaitForMore) {
  const auto system =
      two_cpus({.batch = 64, .timeout = kNever / 2, .streams = 2, .most_waiting = 64, .checksum = false}, {});
  const ReplayResult result = replay(*system, std::vector<std::int64_t>(10), samples_in_turn(10), {}, [] {});
  EXPECT_EQ(result.failure, "");
  EXPECT_TRUE(each_answered_once(result));
}

TEST(BatchingSystem, CancelAnswersWhatWaitsWithoutServingIt) {
  constexpr std::size_t kCount = 200;
  // To serve all takes 50 s of each CPU.
  const auto system = two_cpus({.batch = 2, .timeout = 0, .streams = 2, .most_waiting = 256, .checksum = false},
                               {.batch = 1000 * kMillisecond, .query = 0});
  std::vector<std::atomic<int>> answers(kCount);
  system->start([&](std::span<const Answer> batch) {
    for (const Answer& answer : batch) ++answers[answer.id];
  });
  for (std::size_t i = 0; i < kCount; ++i) {
    const Query query{i, i % kSamples};
    system->issue({&query, 1});
  }
  const std::int64_t begin = now_ns();
  system->cancel();
  system->stop();
  EXPECT_LT(now_ns() - begin, 25'000 * kMillisecond);
  EXPECT_TRUE(std::ranges::all_of(answers, [](const std::atomic<int>& count) { return count == 1; }));
  EXPECT_GT(system->statistics().failed, 0U);
}

TEST(BatchingSystem, AFailureIsToldAtOnceAndQueriesAreStillAnswered) {
  const auto system = two_cpus({.batch = 1, .timeout = 0, .streams = 2, .most_waiting = 256, .checksum = false}, {}, 3);
  EXPECT_FALSE(system->failed());
  const ReplayResult result = replay(*system, std::vector<std::int64_t>(100), samples_in_turn(100), {}, [] {});
  EXPECT_EQ(result.failure, "no such layer");
  EXPECT_EQ(result.hint, "choose another model");
  EXPECT_TRUE(each_answered_once(result));
  EXPECT_GT(system->statistics().failed, 0U);

  std::atomic<int> answered = 0;
  const auto another = two_cpus({.batch = 1, .timeout = 0, .streams = 1, .most_waiting = 16, .checksum = false}, {}, 1);
  another->start([&](std::span<const Answer> batch) { answered += static_cast<int>(batch.size()); });
  const Query query{0, 0};
  another->issue({&query, 1});
  while (answered == 0) std::this_thread::yield();
  EXPECT_TRUE(another->failed());
  EXPECT_THROW(another->stop(), host::Failure);
}

TEST(Crc32, IsTheSameByFoldingAndByteForByte) {
  std::vector<std::byte> data(1000);
  fill_synthetic(3, data);
  for (std::size_t begin = 0; begin < 3; ++begin) {
    for (std::size_t size = 0; size + begin <= data.size(); ++size) {
      std::uint32_t crc = 0xFFFFFFFF;  // bit by bit, as its definition has it
      for (std::size_t i = 0; i < size; ++i) {
        crc ^= std::to_integer<std::uint32_t>(data[begin + i]);
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0U);
      }
      ASSERT_EQ(crc32(data.data() + begin, size), ~crc) << size;
    }
  }
}

}  // namespace
}  // namespace lanewise::loadtest
