// An io_uring that the kernel refuses gives up, and one that it serves reads what is there.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "host/failure.hpp"
#include "storage/ring.hpp"

namespace lanewise::storage {
namespace {

int refusal = EAGAIN;

long refuse(int, unsigned, unsigned, unsigned) {
  errno = refusal;
  return -1;
}

long take_none(int, unsigned, unsigned, unsigned) { return 0; }

class RingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = io_uring_missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
};

void submit_until_it_fails(Ring& ring) {
  ring.next().opcode = 0;  // IORING_OP_NOP
  for (;;) ring.submit(1);
}

TEST_F(RingTest, GivesUpWhereTheKernelTakesNothing) {
  for (const int error : {EAGAIN, EBUSY, ENOMEM}) {
    refusal = error;
    Ring ring(1, refuse);
    EXPECT_THROW(submit_until_it_fails(ring), host::Failure) << std::strerror(error);
  }
  Ring ring(1, take_none);
  EXPECT_THROW(submit_until_it_fails(ring), host::Failure);
}

TEST_F(RingTest, AFullQueueThatIsNotTakenIsAFailure) {
  refusal = EBUSY;
  Ring ring(1, refuse);
  EXPECT_THROW(for (;;) ring.next().opcode = 0, host::Failure);
}

TEST_F(RingTest, ReadsAFileInAnyOrder) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  std::vector<char> data(64 << 10);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 31 >> 3);
  ASSERT_EQ(write(fileno(file), data.data(), data.size()), static_cast<ssize_t>(data.size()));
  Ring ring(8);
  std::vector<char> copy(data.size());
  const std::size_t piece = 4096, pieces = data.size() / piece;
  std::size_t next = 0, back = 0;
  while (back < pieces) {
    for (; next < pieces && next - back < 8; ++next) {
      const std::size_t at = (next * 5 % pieces) * piece;
      abi::Submission& request = ring.next();
      request.opcode = abi::kRead;
      request.file = fileno(file);
      request.offset = at;
      request.address = reinterpret_cast<std::uint64_t>(copy.data() + at);
      request.bytes = piece;
    }
    ring.submit(1);
    ring.reap([&](const abi::Completion& completion) {
      EXPECT_EQ(completion.result, static_cast<std::int32_t>(piece));
      ++back;
    });
  }
  EXPECT_EQ(copy, data);
  std::fclose(file);
}

}  // namespace
}  // namespace lanewise::storage
