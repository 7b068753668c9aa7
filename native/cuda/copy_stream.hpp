// The copies of one CUDA stream in a run: items in order, an event after each of them. An item of a flow is one copy or
// several, an item of queries is a batch of them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/engine.hpp"
#include "cuda/pinned.hpp"

namespace lanewise::cuda {

constexpr int kHost = -1;  // in place of a GPU's ordinal

// `copies` copies of `bytes` from `src` to `dst`; which GPU starts them follows from src, dst and read.
struct Flow {
  int src = kHost;
  int dst = kHost;
  std::size_t bytes = 0;
  int copies = 1;
  int node = host::kAnyNode;  // of the host's memory
  bool sm = false;            // by a kernel, else by a copy engine
  bool read = false;          // between GPUs: the destination pulls
  bool p2p = true;            // between GPUs: with peer access
  bool duplex = false;        // by one kernel with the opposite flow, which has it too
  bool staged() const { return between_gpus() && !p2p; }
  bool between_gpus() const { return src != kHost && dst != kHost && src != dst; }
  int starter() const { return src == kHost || (dst != kHost && read) ? dst : src; }
  std::string name() const;
};

class CopyStream {
 public:
  CopyStream(const Gpu& gpu, int items);
  virtual ~CopyStream() = default;
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  const Gpu& gpu() const { return gpu_; }
  CUstream handle() const { return stream_.get(); }
  int items() const { return items_; }

  // What an item takes of a stream's queue. More than kMostHeld: it cannot be queued while the gate is closed.
  virtual int entries() const { return 1; }
  // Whether the driver stages its copies through host memory.
  virtual bool staged() const { return false; }
  // Queues an item; the GPU's context is current.
  virtual void queue(int item) = 0;
  // Other numbers of items, and of what an item consists of.
  virtual void resize(int items, int per_item);
  // Switches peer access as the stream needs it.
  virtual void set_peers(Engine&) const {}
  // Copies a pattern that `seed` names and compares; host::Failure names the first wrong byte. Runs nothing else.
  virtual void verify(unsigned long long seed) = 0;
  virtual std::map<int, std::size_t> pages() const { return {}; }
  virtual std::string name() const = 0;

  void start();                                    // queues the event that times count from
  void record(int item);                           // queues the event after an item
  void finish() const;                             // waits for all that is queued
  virtual std::vector<double> timestamps() const;  // seconds from the start to the end of each item, once finished

 protected:
  const Event& event_after(int item) const { return events_[static_cast<std::size_t>(item) + 1]; }
  [[noreturn]] void fail_verification(const std::string& where) const;

 private:
  const Gpu& gpu_;
  Stream stream_;
  std::vector<Event> events_;  // the start, then one an item; kept when items get fewer
  int items_ = 0;
};

// One end of a flow: memory of the host or of a GPU.
class FlowEnd {
 public:
  FlowEnd(Engine& engine, int where, std::size_t bytes, int node, const Gpu& registrar);
  std::byte* host() const { return pinned_ ? pinned_->data() : nullptr; }
  CUdeviceptr address() const { return address_; }  // as the starter's kernels see it
  CUcontext context() const { return gpu_->context()->handle(); }
  std::map<int, std::size_t> pages() const { return pinned_ ? pinned_->pages() : std::map<int, std::size_t>{}; }
  void fill(std::size_t bytes, unsigned long long seed) const;
  std::size_t first_wrong(std::size_t bytes, unsigned long long seed) const;

 private:
  const Gpu* gpu_;  // whose memory it is; null: the host's
  std::shared_ptr<const Pinned> pinned_;
  std::shared_ptr<const DeviceMemory> memory_;
  CUdeviceptr address_ = 0;
};

// A flow's stream: every copy is of the whole buffer. `concurrent`: how many kernels copy on that GPU at once.
class FlowStream : public CopyStream {
 public:
  FlowStream(Engine& engine, const Flow& flow, int concurrent);
  // Makes this stream's kernel copy `back` too, whose own stream then has nothing to do.
  void carry(FlowStream& back);
  int entries() const override;
  bool staged() const override { return flow_.staged(); }
  void queue(int item) override;
  void resize(int items, int per_item) override;
  void set_peers(Engine& engine) const override;
  void verify(unsigned long long seed) override;
  std::vector<double> timestamps() const override;
  std::map<int, std::size_t> pages() const override;
  std::string name() const override { return flow_.name(); }

 private:
  void copy();
  void fill(unsigned long long seed) const;
  void compare(unsigned long long seed) const;

  const Engine& engine_;
  Flow flow_;
  int per_item_ = 1;  // copies an item
  int concurrent_;
  FlowEnd from_;
  FlowEnd to_;
  FlowStream* back_ = nullptr;     // the opposite flow, copied by this stream's kernel
  FlowStream* carrier_ = nullptr;  // whose kernel copies this flow
};

// The pattern in host memory, by CPUs of a NUMA node.
void fill_host(std::byte* at, std::size_t bytes, unsigned long long seed, int node = host::kAnyNode);

}  // namespace lanewise::cuda
