// Which node a query goes to: the one that is expected to answer it first, from the round trips of earlier queries. It
// belongs to the issuing thread alone, and knows neither clocks nor channels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lanewise::dispatch {

// Of one query, or the means of some that came back together.
struct RoundTrip {
  float ahead = 0;  // queries that were outstanding at the node when it was posted
  float time = 0;   // from there to its answer; of any unit, the same for all nodes

  bool operator==(const RoundTrip&) const = default;
};

// How long a node would take to answer the next query.
class CompletionTime {
 public:
  static constexpr double kWeight = 1.0 / 64;  // of the newest round trip, once there were as many

  void add(const RoundTrip& trip) noexcept;
  bool measured() const noexcept { return count_ > 0; }
  // Of a query that finds so many outstanding. By Little's law a busy node gives an answer each interval of mean round
  // trip / mean number in flight. No answer comes sooner than the shortest round trip.
  double expected(std::uint64_t ahead) const noexcept;

 private:
  double count_ = 0, time_ = 0, in_flight_ = 0, shortest_ = 0, interval_ = 0;
};

// A node that can take a query.
struct Candidate {
  std::size_t node = 0;
  std::uint64_t outstanding = 0;  // posted to it and not answered
  int distance = 0;               // of its NIC from the query's sample; 0: near
};

class NodeBalance {
 public:
  // Expected times up to so many times the least count as equal: nodes of one speed have equally many in flight then.
  static constexpr double kEqual = 1.1;
  // An idle node that got none of so many queries gets the next one, as it may have become faster.
  static constexpr std::uint64_t kStale = 1024;

  // Forgets everything. Nodes are numbered from 0.
  void reset(std::size_t nodes);
  void add(std::size_t node, const RoundTrip& trip) noexcept;
  // Which candidate (of one or more) gets the next query: that of the least expected time; of equals the one with the
  // fewest outstanding, of equals the nearest, of equals the first. Until each was measured, all times are equal.
  std::size_t choose(std::span<const Candidate> candidates) noexcept;

 private:
  struct Node {
    CompletionTime time;
    double expected = 0;     // of the query that is about to be sent
    std::uint64_t last = 0;  // number of the last query that it got
    bool probed = false;     // that one is to show whether it became faster
  };

  std::vector<Node> nodes_;
  std::uint64_t chosen_ = 0;  // queries so far
};

}  // namespace lanewise::dispatch
