// The same over a bare TCP socket: a header with the slot in front of each sample, an answer of 8 bytes. The Frontend
// sends in one thread and receives in another; the node reads a sample and the next header in one call, into its slot.
// TRANSPORT: tcp.
#include <sys/uio.h>

#include <atomic>
#include <thread>

#include "peer.hpp"

namespace {

struct Header {
  std::uint32_t slot, bytes;
};
struct Answer {
  std::uint32_t slot, sum;
};

// All of the vectors, where the call may take or bring less.
template <class Call>
void whole(Call&& call, iovec* vectors, int count, const char* what) {
  while (count > 0) {
    const ssize_t done = call(vectors, count);
    if (done == 0) std::_Exit(0);
    peer::check(done > 0, what);
    for (auto left = static_cast<std::size_t>(done); count > 0; ++vectors, --count) {
      const std::size_t here = std::min(left, vectors->iov_len);
      vectors->iov_base = static_cast<std::byte*>(vectors->iov_base) + here;
      vectors->iov_len -= here;
      left -= here;
      if (vectors->iov_len > 0) break;
    }
  }
}
void read_whole(int fd, iovec* vectors, int count) {
  whole([fd](iovec* at, int of) { return readv(fd, at, of); }, vectors, count, "readv");
}
void write_whole(int fd, iovec* vectors, int count) {
  whole([fd](iovec* at, int of) { return writev(fd, at, of); }, vectors, count, "writev");
}

void node(const peer::Options& options, int fd) {
  std::vector<std::byte> slots(options.slots * options.stride());
  Header header{}, next{};
  iovec first{&header, sizeof header};
  read_whole(fd, &first, 1);
  // The next header can only be waited for with this sample if it comes without its answer.
  const bool ahead = options.window > 1;
  for (;;) {
    std::byte* const slot = slots.data() + header.slot * options.stride();
    iovec vectors[2]{{slot, header.bytes}, {&next, sizeof next}};
    if (ahead) {
      // What is there of the next header comes along; the rest is read after the answer.
      std::size_t got = 0;
      while (got < header.bytes) {
        iovec rest[2]{{slot + got, header.bytes - got}, {&next, sizeof next}};
        const ssize_t here = readv(fd, rest, 2);
        if (here == 0) std::_Exit(0);
        peer::check(here > 0, "readv");
        got += static_cast<std::size_t>(here);
      }
      const std::size_t of_next = got - header.bytes;
      vectors[1] = {reinterpret_cast<std::byte*>(&next) + of_next, sizeof next - of_next};
    } else {
      read_whole(fd, vectors, 1);
      vectors[1] = {&next, sizeof next};
    }
    Answer answer{header.slot, lanewise::loadtest::crc32(slot, header.bytes)};
    iovec out{&answer, sizeof answer};
    write_whole(fd, &out, 1);
    if (vectors[1].iov_len > 0) read_whole(fd, &vectors[1], 1);
    header = next;
  }
}

// Queries have slots in turn: answers come in order.
void frontend(const peer::Options& options, int fd, const peer::Library& library, peer::Meter& meter) {
  std::atomic<std::uint64_t> answered = 0;
  std::atomic<bool> over = false;
  std::thread receiver([&] {
    std::vector<Answer> answers(options.window);
    std::size_t kept = 0;  // bytes of an answer that has not come whole
    for (std::uint64_t query = 0; !over.load();) {
      const ssize_t got =
          recv(fd, reinterpret_cast<std::byte*>(answers.data()) + kept, answers.size() * sizeof(Answer) - kept, 0);
      if (got <= 0) return;
      const std::size_t bytes = kept + static_cast<std::size_t>(got), whole_ones = bytes / sizeof(Answer);
      for (std::size_t i = 0; i < whole_ones; ++i, ++query) meter.answer(query, answers[i].sum == library.sum(query));
      kept = bytes % sizeof(Answer);
      std::memmove(answers.data(), answers.data() + whole_ones, kept);
      answered.fetch_add(whole_ones, std::memory_order_release);
      answered.notify_one();
    }
  });
  for (std::uint64_t query = 0; !meter.over(); ++query) {
    for (std::uint64_t done = answered.load(); query - done >= options.window; done = answered.load()) {
      answered.wait(done);
    }
    meter.issue(query);
    Header header{static_cast<std::uint32_t>(query % options.slots), static_cast<std::uint32_t>(options.bytes)};
    iovec vectors[2]{{&header, sizeof header}, {const_cast<std::byte*>(library.at(query)), options.bytes}};
    write_whole(fd, vectors, 2);
  }
  over.store(true);
  shutdown(fd, SHUT_RDWR);
  receiver.join();
}

}  // namespace

int main(int count, char** words) {
  const peer::Options options = peer::options(count, words);
  const std::array<int, 2> sockets = peer::tcp_pair();
  const int on = 1;
  for (const int fd : sockets) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const pid_t child = peer::start_node(options, [&] { node(options, sockets[1]); });
  close(sockets[1]);
  peer::pin(options, 0);
  const peer::Library library(options);
  peer::Meter meter(options.seconds);
  frontend(options, sockets[0], library, meter);
  const bool right = meter.finish(child);
  return right ? 0 : 1;
}
