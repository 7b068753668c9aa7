// A system under test (MLPerf's SUT): what a load generator sends queries to. It knows nothing of LoadGen, and LoadGen
// nothing of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace lanewise::loadtest {

struct Query {
  std::uint64_t id;      // the generator's, given back with the answer
  std::uint64_t sample;  // index in the dataset: in MLPerf a query asks for one sample, in MultiStream for several
};

struct Answer {
  std::uint64_t id;
  const std::byte* data = nullptr;  // kept only where accuracy is logged; valid during the call
  std::size_t bytes = 0;
};

// Takes answers of a batch at once, from any thread; each query has exactly one.
using AnswerCallback = std::function<void(std::span<const Answer>)>;

class SystemUnderTest {
 public:
  virtual ~SystemUnderTest() = default;
  virtual std::string name() const = 0;
  // Brings samples into memory, or lets them go; between runs and not timed.
  virtual void load(std::span<const std::uint64_t> samples) = 0;
  virtual void unload(std::span<const std::uint64_t> samples) = 0;
  // A run begins: from now on `answer` may be called.
  virtual void start(AnswerCallback answer) = 0;
  // Queries arrive, in Server one at a time or coalesced; waits while there is no room for them, and throws nothing.
  // After a failure every query is still answered, with no data.
  virtual void issue(std::span<const Query> queries) = 0;
  // Nothing more comes for now: no batch may wait for more queries.
  virtual void flush() = 0;
  // The run is given up: queries that wait may be answered now, with no data, instead of being served.
  virtual void cancel() {}
  // Whether queries get answers with no data from now on, as something failed; stop() says what.
  virtual bool failed() const noexcept { return false; }
  // The run is over, all queries answered; host::Failure says what went wrong in it, if anything did.
  virtual void stop() = 0;
};

}  // namespace lanewise::loadtest
