// Memory that is given back whatever happens, and threads whose exceptions end nobody.
#include <gtest/gtest.h>

#include <fstream>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>

#include "host/guarded.hpp"
#include "host/memory.hpp"
#include "host/parts.hpp"

namespace lanewise::host {
namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20;

// Pages of this process that are mapped, from the kernel.
std::size_t mapped_pages() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

template <typename Action>
std::optional<std::string> caught(Action action) {
  std::optional<std::string> cause;
  guarded(action, [&](const Failure& failure) { cause = failure.what(); });
  return cause;
}

TEST(Guarded, KeepsWhatIsThrownWhateverItIs) {
  EXPECT_EQ(caught([] {}), std::nullopt);
  EXPECT_EQ(caught([] { throw Failure("broken", "mend it"); }), "broken");
  EXPECT_NE(caught([] { throw std::bad_alloc(); })->find("bad_alloc"), std::string::npos);
  EXPECT_NE(caught([] { throw std::invalid_argument("stoul"); })->find("stoul"), std::string::npos);
  EXPECT_NE(caught([] { throw 7; })->find("unknown"), std::string::npos);
}

TEST(Memory, IsTouchedAndGivenBack) {
  const std::size_t before = mapped_pages();
  {
    const Memory memory(kBytes, kAnyNode);
    EXPECT_GE(mapped_pages(), before + kBytes / 4096);
    for (std::size_t at = 0; at < memory.size(); at += 4096) ASSERT_EQ(memory.data()[at], std::byte{1});
  }
  EXPECT_LT(mapped_pages(), before + kBytes / 4096);
}

TEST(Memory, OfANodeThatIsNotThereIsGivenBack) {
  const std::size_t before = mapped_pages();
  EXPECT_THROW(Memory(kBytes, 1000), Failure);
  EXPECT_LT(mapped_pages(), before + kBytes / 4096);
}

TEST(Memory, MovesWithoutCopies) {
  Memory memory(4096, kAnyNode);
  std::byte* const data = memory.data();
  const Memory moved(std::move(memory));
  EXPECT_EQ(moved.data(), data);
}

TEST(InParts, CoversEveryByteOnce) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, (std::size_t{40} << 20) + 13}) {
    std::vector<std::atomic<int>> touched(bytes / 4096 + 1);
    std::atomic<std::size_t> sum{0};
    in_parts(bytes, 0, [&](std::size_t begin, std::size_t end) {
      sum += end - begin;
      ++touched[begin / 4096];
    });
    EXPECT_EQ(sum, bytes);
    for (const auto& count : touched) EXPECT_LE(count, 1);
  }
}

}  // namespace
}  // namespace lanewise::host
