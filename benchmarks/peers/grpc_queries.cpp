// The same by gRPC: one bidirectional stream, asynchronous on both sides, a thread each; a query and its answer are
// messages of queries.proto. The node sums the data in the message.
// TRANSPORT: tcp, or unix (a Unix domain socket).
#include <grpcpp/grpcpp.h>

#include "peer.hpp"
#include "queries.grpc.pb.h"

namespace {

using lanewise::peer::Answer;
using lanewise::peer::Query;
using Service = lanewise::peer::Node;

enum Event : std::uintptr_t { kStarted = 1, kRead, kWritten };
void* tag(Event event) { return reinterpret_cast<void*>(event); }

void node(const std::string& address, int ready) {
  Service::AsyncService service;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  peer::check(server != nullptr, "a gRPC server");
  grpc::ServerContext context;
  grpc::ServerAsyncReaderWriter<Answer, Query> stream(&context);
  service.RequestAnswers(&context, &stream, queue.get(), queue.get(), tag(kStarted));
  peer::check(write(ready, "x", 1) == 1, "write");
  Query query;
  std::vector<Answer> waiting;  // one write at a time
  std::size_t next = 0;
  bool writing = false, fine = false;
  for (void* event = nullptr; queue->Next(&event, &fine) && fine;) {
    if (event == tag(kRead)) {
      const std::string& data = query.data();
      Answer& answer = waiting.emplace_back();
      answer.set_slot(query.slot());
      answer.set_sum(lanewise::loadtest::crc32(reinterpret_cast<const std::byte*>(data.data()), data.size()));
    }
    if (event == tag(kWritten)) writing = false;
    if (event != tag(kWritten)) stream.Read(&query, tag(kRead));
    if (writing || next == waiting.size()) continue;
    stream.Write(waiting[next++], tag(kWritten));
    writing = true;
    if (next == waiting.size()) waiting.clear(), next = 0;
  }
}

void frontend(const peer::Options& options, const std::string& address, const peer::Library& library,
              peer::Meter& meter, pid_t child) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  const auto stub = Service::NewStub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto stream = stub->AsyncAnswers(&context, &queue, tag(kStarted));
  Query query;
  Answer answer;
  std::uint64_t issued = 0, answered = 0;
  bool writing = true, fine = false;
  for (void* event = nullptr; !meter.over() && queue.Next(&event, &fine);) {
    peer::check(fine, "a gRPC stream");
    if (event != tag(kRead)) writing = false;
    if (event == tag(kRead)) {
      meter.answer(answered, answer.slot() == answered % options.slots && answer.sum() == library.sum(answered));
      ++answered;
    }
    if (event != tag(kWritten)) stream->Read(&answer, tag(kRead));
    if (writing || issued - answered >= options.window) continue;
    query.set_slot(static_cast<std::uint32_t>(issued % options.slots));
    query.set_data(library.at(issued), options.bytes);
    meter.issue(issued++);
    stream->Write(query, tag(kWritten));
    writing = true;
  }
  std::_Exit(meter.finish(child) ? 0 : 1);
}

}  // namespace

int main(int count, char** words) {
  const peer::Options options = peer::options(count, words);
  const bool is_unix = options.transport == "unix";
  std::string address = "unix:/tmp/lanewise-peer-" + std::to_string(getpid());
  if (!is_unix) {
    const int probe = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    peer::check(bind(probe, reinterpret_cast<sockaddr*>(&at), size) == 0, "bind");
    getsockname(probe, reinterpret_cast<sockaddr*>(&at), &size);
    close(probe);
    address = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  int ready[2];
  peer::check(pipe(ready) == 0, "pipe");
  const pid_t child = peer::start_node(options, [&] { node(address, ready[1]); });
  char byte = 0;
  peer::check(read(ready[0], &byte, 1) == 1, "read");
  peer::pin(options, 0);
  const peer::Library library(options);
  peer::Meter meter(options.seconds);
  frontend(options, address, library, meter, child);
}
