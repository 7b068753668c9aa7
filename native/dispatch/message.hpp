// What travels between a Frontend and a node: messages, most of them with data for one slot of the receiver's memory.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace lanewise::dispatch {

enum class MessageKind : std::uint32_t {
  kQuery,   // Frontend: a sample, which is the data
  kAnswer,  // node: its answer, which is the data
  kFailed,  // node: an answer without data, as its system has failed
  kStart,   // Frontend: a run begins
  kStop,    // Frontend: the run is over
  kName,    // Frontend: asks for the node's name
  kReply,   // node: to these three; the data is a text
  kFlush,   // Frontend: nothing more comes for now
  kCancel,  // Frontend: the run is given up
  kLast = kCancel
};

// Whether it is a query or its answer, not one of those with which a run begins and ends.
constexpr bool is_transaction(MessageKind kind) { return kind <= MessageKind::kFailed; }

struct Message {
  std::uint32_t slot = 0;   // of the receiver's memory
  std::uint32_t tag = 0;    // generation of the transaction that has this slot
  std::uint32_t bytes = 0;  // of data in the slot
  MessageKind kind = MessageKind::kQuery;
  std::int64_t time = 0;  // of an answer: ns that its query spent at the node
};

// Both sides send it as it lies in memory; the handshake has compared byte orders and versions.
static_assert(sizeof(Message) == 24 && std::is_trivially_copyable_v<Message>);
static_assert(std::endian::native == std::endian::little);

// Messages in a ring: room for one of every slot, twice, and for some of a run's own: never full with an honest peer.
constexpr std::uint32_t ring_capacity(std::uint32_t slots) { return std::bit_ceil(2 * slots + 64); }

// The slot that holds the text of a reply, behind those of answers.
constexpr std::size_t kTextBytes = 1024;

}  // namespace lanewise::dispatch
