// Graphs captured from streams; instantiated, a graph is copied.
#include "world.hpp"

using namespace fake;

namespace {

Stream* stream_of(CUstream handle) {
  auto* stream = reinterpret_cast<Stream*>(handle);
  return world().streams.contains(stream) && current() == stream->device ? stream : nullptr;
}

CUresult give_back(void* handle) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  auto* graph = static_cast<Graph*>(handle);
  if (w.graphs.erase(graph) == 0) return kInvalidHandle;
  delete graph;
  return kSuccess;
}

}  // namespace

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream handle, int) {
  FAKE(cuStreamBeginCapture_v2);
  World& w = world();
  const std::scoped_lock hold(w.lock);
  Stream* stream = stream_of(handle);
  if (stream == nullptr || stream->capture) return kInvalidHandle;
  stream->capture.emplace();
  return kSuccess;
}

CUresult cuStreamEndCapture(CUstream handle, void** graph) {
  World& w = world();
  const std::scoped_lock hold(w.lock);
  Stream* stream = stream_of(handle);
  *graph = nullptr;
  if (stream == nullptr || !stream->capture) return kInvalidHandle;
  auto* captured = new Graph{stream->device, *std::exchange(stream->capture, std::nullopt)};
  w.graphs.insert(captured);
  *graph = captured;
  return kSuccess;
}

CUresult cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  FAKE(cuGraphInstantiateWithFlags);
  World& w = world();
  const std::scoped_lock hold(w.lock);
  if (!w.graphs.contains(static_cast<Graph*>(graph))) return kInvalidHandle;
  // As two H200 refused it (driver 580): while another stream of the thread captures, nothing is instantiated.
  for (const Stream* stream : w.streams) {
    if (stream->capture) return kCaptureUnsupported;
  }
  auto* copy = new Graph(*static_cast<Graph*>(graph));
  w.graphs.insert(copy);
  *executable = copy;
  return kSuccess;
}

CUresult cuGraphLaunch(void* executable, CUstream stream) {
  FAKE(cuGraphLaunch);
  auto* graph = static_cast<Graph*>(executable);
  if (graph->device != current()) return kInvalidContext;
  for (const auto& work : graph->work) {
    if (const CUresult result = submit(stream, work)) return result;
  }
  return kSuccess;
}

CUresult cuGraphDestroy(void* graph) { return give_back(graph); }
CUresult cuGraphExecDestroy(void* executable) { return give_back(executable); }
}
