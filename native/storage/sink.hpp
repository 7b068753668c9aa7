// Where data goes on to after it has been read into host memory, or comes from before it is written: nowhere, other
// host memory, or a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lanewise::storage {

// One I/O: the slot whose buffer it uses, and its number in the volume.
struct Io {
  std::size_t slot;
  std::uint64_t index;
};

class Sink {
 public:
  virtual ~Sink() = default;
  // Called once by each thread that will use it.
  virtual void enter(std::size_t) {}
  // Copies the content of a slot to its destination, and returns when the copy is complete.
  virtual void take(std::size_t worker, Io io, const std::byte* from, std::size_t bytes) = 0;
  // Copies back what a slot's data became, to be checked or to be written.
  virtual void give(std::size_t worker, Io io, std::byte* to, std::size_t bytes) = 0;
  // Makes `from` a slot's data, untimed, so that a write that is compared later begins there.
  virtual void put(std::size_t worker, Io io, const std::byte* from, std::size_t bytes) {
    take(worker, io, from, bytes);
  }
  // Whether files are read and written without host memory of ours.
  virtual bool direct() const { return false; }
  // Where copies may go on while a thread reads the next I/O: begins one, and waits for its end.
  virtual bool overlaps() const { return false; }
  virtual void start(std::size_t, Io, const std::byte*, std::size_t) {}
  virtual void wait(Io) {}
  // Where an I/O may read to so that no copy is needed; null: into its slot.
  virtual std::byte* straight(Io) { return nullptr; }
  virtual bool is_straight() const { return false; }
};

// A second buffer in host memory.
class HostSink : public Sink {
 public:
  HostSink(std::byte* data, std::size_t stride) : data_(data), stride_(stride) {}
  void take(std::size_t, Io io, const std::byte* from, std::size_t bytes) override {
    std::memcpy(data_ + io.slot * stride_, from, bytes);
  }
  void give(std::size_t, Io io, std::byte* to, std::size_t bytes) override {
    std::memcpy(to, data_ + io.slot * stride_, bytes);
  }

 private:
  std::byte* data_;
  std::size_t stride_;
};

}  // namespace lanewise::storage
