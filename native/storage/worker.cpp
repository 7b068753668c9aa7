#include "storage/worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "storage/pattern.hpp"

namespace lanewise::storage {

namespace {

// What to ask for of a piece: a load's last one ends with its file, where direct reads take whole pages all the same.
std::uint64_t request_bytes(const Job& job, const Piece& piece, std::uint64_t moved) {
  const std::uint64_t whole = job.places.empty() ? piece.bytes : (piece.bytes + kPage - 1) / kPage * kPage;
  return whole - moved;  // after a short read too, no more than the buffer has room for
}

constexpr const char* kStillFile = "measure a file that nobody writes to; otherwise do not trust this path";

}  // namespace

Worker::Worker(const Job& job, unsigned number, std::span<Slot> slots, Sink* sink)
    : job_(job), number_(number), volume_(number % job.volumes.size()), slots_(slots), sink_(sink) {}

void Worker::enter() {
  host::pin_thread(job_.cpus);
  if (sink_ != nullptr) sink_->enter(number_);
}

bool Worker::begin(Round& round, Slot& slot) {
  const auto offset = round.next(volume_);
  if (!offset) return false;
  slot.index = *offset / job_.io;
  job_.volumes[volume_].pieces(*offset, job_.io, slot.pieces);
  slot.data = slot.buffer;
  if (sink_ != nullptr && sink_->is_straight() && round.task().read && round.task().keep)
    slot.data = sink_->straight({slot.number, slot.index});
  slot.moved.assign(slot.pieces.size(), 0);
  slot.open = slot.pieces.size();
  const bool unchecked_sink = sink_ != nullptr && round.task().data == Data::kAny;
  if (round.task().write && !unchecked_sink) write_pattern(round.task(), slot);
  slot.started = Clock::now();
  if (round.task().write && sink_ != nullptr && !sink_->direct()) {
    sink_->give(number_, {slot.number, slot.index}, slot.data, job_.io);
  }
  return true;
}

void Worker::write_pattern(const Task& task, Slot& slot) {
  for (const Piece& piece : slot.pieces) {
    if (task.data == Data::kFilled) {
      fill(slot.data, piece, task.salt);
    } else {
      stamp(slot.data, piece, task.salt);
    }
  }
  if (sink_ == nullptr) return;
  sink_->put(number_, {slot.number, slot.index}, slot.data, job_.io);
  if (!sink_->direct()) std::memset(slot.data, 0, job_.io);  // what is written has to come from the sink
}

void Worker::complete(Round& round, Slot& slot) {
  const Task& task = round.task();
  if (sink_ != nullptr && !task.write && task.keep && slot.data == slot.buffer) {
    sink_->take(number_, {slot.number, slot.index}, slot.data, bytes_of(slot));
  }
  round.done(number_, volume_, slot.pieces, slot.started);
  if (task.data != Data::kAny && !task.write) compare(round, slot);
}

void Worker::compare(Round& round, Slot& slot) {
  const Task& task = round.task();
  if (sink_ != nullptr) {
    std::memset(slot.data, 0, job_.io);
    sink_->give(number_, {slot.number, slot.index}, slot.data, bytes_of(slot));
  }
  for (const Piece& piece : slot.pieces) {
    if (task.data == Data::kReread) {
      reread(slot, piece);
      continue;
    }
    const std::uint64_t good = right(slot.data, piece, task.salt, task.data == Data::kStamped);
    if (good < piece.bytes) {
      throw host::Failure(job_.names[piece.file] + ": what was read at offset " + std::to_string(piece.offset + good) +
                              " is not what was written there",
                          "do not trust this path: look at the kernel log, and at IOMMU and ACS settings");
    }
  }
}

std::size_t Worker::bytes_of(const Slot& slot) const {
  return job_.places.empty() ? job_.io : slot.pieces.front().bytes;
}

void Worker::without_reading(Round& round) {
  Slot& slot = slots_.front();
  while (begin(round, slot)) complete(round, slot);
}

void Worker::reread(const Slot& slot, const Piece& piece) {
  if (!second_) second_.emplace(job_.io, host::kAnyNode);  // aligned as direct reads ask for it
  for (std::uint64_t got = 0; got < piece.bytes;) {
    const auto offset = static_cast<off_t>(piece.offset + got);
    const std::uint64_t bytes = request_bytes(job_, piece, got);
    const ssize_t more = pread(job_.second_files[piece.file], second_->data() + got, bytes, offset);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) throw host::system_failure(job_.names[piece.file] + ": read again", errno, "is the file changing?");
    if (more == 0) throw host::Failure(job_.names[piece.file] + ": read again, the file ends early", kStillFile);
    got = std::min(piece.bytes, got + static_cast<std::uint64_t>(more));
  }
  if (std::memcmp(second_->data(), slot.data + piece.at, piece.bytes) != 0) {
    throw host::Failure(
        job_.names[piece.file] + ": a second reading at offset " + std::to_string(piece.offset) + " gives other data",
        kStillFile);
  }
}

void Worker::fail(const Round& round, const Piece& piece, std::uint64_t moved, int error) const {
  const bool write = round.task().write;
  const std::string place = job_.names[piece.file] + ": " + (write ? "writing" : "reading") + " at offset " +
                            std::to_string(piece.offset + moved);
  if (error == 0) throw host::Failure(place + ": the file ends there", "measure a file that nobody shortens");
  const char* hint = "look at the kernel log (dmesg): the drive or its link may have failed";
  if (error == EINVAL) hint = "use an I/O size that is a multiple of 4 KiB, or --modes cached";
  if (error == ENOSPC || error == EDQUOT) hint = "make room, or make a smaller file";
  if (error == EFBIG) hint = "make a smaller file (ulimit -f)";
  throw host::system_failure(place, error, hint);
}

namespace {

class RingWorker : public Worker {
 public:
  RingWorker(const Job& job, unsigned number, std::span<Slot> slots, Sink* sink, unsigned in_flight)
      : Worker(job, number, slots, sink), most_(in_flight) {}

  void enter() override {
    Worker::enter();
    ring_.emplace(most_);
    std::vector<iovec> buffers;
    for (const Slot& slot : slots_) buffers.push_back({slot.buffer, stride(job_)});
    buffers_pinned_ = ring_->pin_buffers(buffers);
    files_pinned_ = ring_->pin_files(job_.files);
  }

  void work(Round& round) override {
    if (!round.task().read) return without_reading(round);
    std::size_t busy = 0;
    try {
      for (Slot& slot : slots_) busy += start(round, slot) ? 1 : 0;
      while (busy > 0) {
        ring_->submit(1);
        ring_->reap([&](const abi::Completion& completion) { busy -= land(round, completion) ? 1 : 0; });
      }
    } catch (...) {
      drain();  // the kernel may still write into the buffers
      throw;
    }
  }

  std::string how() const override {
    if (sink_ != nullptr && sink_->is_straight()) return "io_uring, straight to where data stays";
    const char* buffers = buffers_pinned_ ? "registered buffers" : "buffers not registered (locked memory, ulimit -l)";
    return std::string("io_uring, ") + buffers + (files_pinned_ ? ", registered files" : "");
  }

 private:
  bool start(Round& round, Slot& slot) {
    if (!begin(round, slot)) return false;
    for (std::size_t piece = 0; piece < slot.pieces.size(); ++piece) request(round, slot, piece);
    return true;
  }

  void request(const Round& round, const Slot& slot, std::size_t index) {
    const Piece& piece = slot.pieces[index];
    const std::uint64_t moved = slot.moved[index];
    const auto local = static_cast<std::size_t>(&slot - slots_.data());
    const bool write = round.task().write;
    abi::Submission& submission = ring_->next();
    const bool fixed = buffers_pinned_ && slot.data == slot.buffer;
    submission.opcode = fixed ? (write ? abi::kWriteFixed : abi::kReadFixed) : (write ? abi::kWrite : abi::kRead);
    submission.flags = files_pinned_ ? abi::kFixedFile : std::uint8_t{0};
    submission.file = files_pinned_ ? static_cast<std::int32_t>(piece.file) : job_.files[piece.file];
    submission.offset = piece.offset + moved;
    submission.address = reinterpret_cast<std::uint64_t>(slot.data + piece.at + moved);
    submission.bytes = static_cast<std::uint32_t>(request_bytes(job_, piece, moved));
    submission.buffer = fixed ? static_cast<std::uint16_t>(local) : std::uint16_t{0};
    submission.user = static_cast<std::uint64_t>(local) << 32 | index;
    ++in_flight_;
  }

  // Takes one completion in; true where its slot has nothing more to do.
  bool land(Round& round, const abi::Completion& completion) {
    --in_flight_;
    Slot& slot = slots_[completion.user >> 32];
    const auto index = static_cast<std::size_t>(completion.user & 0xFFFFFFFFU);
    const Piece& piece = slot.pieces[index];
    const bool again = completion.result == -EAGAIN || completion.result == -EINTR;
    if (completion.result <= 0 && !again) fail(round, piece, slot.moved[index], -completion.result);
    if (!again) {
      slot.moved[index] = std::min(piece.bytes, slot.moved[index] + static_cast<std::uint64_t>(completion.result));
    }
    if (slot.moved[index] < piece.bytes) {
      request(round, slot, index);
      return false;
    }
    if (--slot.open > 0) return false;
    complete(round, slot);
    if (!start(round, slot)) return true;
    ring_->submit(0);  // at once: handed over in heaps, the drive runs dry between them
    return false;
  }

  void drain() noexcept {
    try {
      while (in_flight_ > 0) {
        ring_->submit(1);
        ring_->reap([this](const abi::Completion&) { --in_flight_; });
      }
    } catch (...) {  // the ring itself is broken; closing it ends what is in flight
    }
  }

  const unsigned most_;
  std::optional<Ring> ring_;
  std::size_t in_flight_ = 0;
  bool buffers_pinned_ = false;
  bool files_pinned_ = false;
};

class SyncWorker : public Worker {
 public:
  using Worker::Worker;

  void work(Round& round) override {
    if (!round.task().read) return without_reading(round);
    if (sink_ != nullptr && sink_->overlaps() && round.task().keep && round.task().data == Data::kAny) {
      return overlapped(round);
    }
    // All slots in turn, so that the reads of a load measured alone go into as much memory as those of the load.
    for (std::size_t turn = 0; begin(round, slots_[turn]); turn = (turn + 1) % slots_.size()) {
      Slot& slot = slots_[turn];
      for (const Piece& piece : slot.pieces) move(round, slot, piece);
      complete(round, slot);
    }
  }

  std::string how() const override { return "psync (pread in threads)"; }

 protected:
  // As pread and pwrite answer: bytes, or -1 and errno.
  virtual ssize_t part(const Round& round, const Slot& slot, const Piece& piece, std::uint64_t moved) {
    std::byte* at = slot.data + piece.at + moved;
    const std::size_t bytes = request_bytes(job_, piece, moved);
    const auto offset = static_cast<off_t>(piece.offset + moved);
    const int file = job_.files[piece.file];
    return round.task().write ? pwrite(file, at, bytes, offset) : pread(file, at, bytes, offset);
  }

 private:
  // Reads into one slot while copies from the others go on.
  void overlapped(Round& round) {
    std::vector<bool> copying(slots_.size());
    const auto finish = [&](std::size_t turn) {
      if (!copying[turn]) return;
      Slot& slot = slots_[turn];
      sink_->wait({slot.number, slot.index});
      round.done(number_, volume_, slot.pieces, slot.started);
      copying[turn] = false;
    };
    for (std::size_t turn = 0;; turn = (turn + 1) % slots_.size()) {
      finish(turn);
      Slot& slot = slots_[turn];
      if (!begin(round, slot)) break;
      for (const Piece& piece : slot.pieces) move(round, slot, piece);
      sink_->start(number_, {slot.number, slot.index}, slot.data, bytes_of(slot));
      copying[turn] = true;
    }
    for (std::size_t turn = 0; turn < slots_.size(); ++turn) finish(turn);
  }

  void move(const Round& round, const Slot& slot, const Piece& piece) {
    for (std::uint64_t moved = 0; moved < piece.bytes;) {
      const ssize_t more = part(round, slot, piece, moved);
      if (more < 0 && errno == EINTR) continue;
      if (more <= 0) fail(round, piece, moved, more < 0 ? errno : 0);
      moved = std::min(piece.bytes, moved + static_cast<std::uint64_t>(more));
    }
  }
};

class CuFileWorker : public SyncWorker {
 public:
  CuFileWorker(const Job& job, unsigned number, std::span<Slot> slots, CuFileSink* sink)
      : SyncWorker(job, number, slots, sink), gpu_(*sink) {}

  std::string how() const override { return gpu_.how(); }

 protected:
  ssize_t part(const Round& round, const Slot& slot, const Piece& piece, std::uint64_t moved) override {
    const auto offset = static_cast<off_t>(piece.offset + moved);
    const auto call = round.task().write ? &CuFileSink::write : &CuFileSink::read;
    return (gpu_.*call)(piece.file, slot.number, piece.at + moved, piece.bytes - moved, offset);
  }

 private:
  CuFileSink& gpu_;
};

}  // namespace

std::unique_ptr<Worker> ring_worker(const Job& job, unsigned number, std::span<Slot> slots, Sink* sink) {
  std::size_t most = 1;
  for (const Volume& volume : job.volumes) {
    if (volume.stripe > 0) most = std::max<std::size_t>(most, job.io / volume.stripe + 2);
  }
  return std::make_unique<RingWorker>(job, number, slots, sink, static_cast<unsigned>(most * slots.size()));
}

std::unique_ptr<Worker> sync_worker(const Job& job, unsigned number, std::span<Slot> slots, Sink* sink) {
  return std::make_unique<SyncWorker>(job, number, slots, sink);
}

std::unique_ptr<Worker> cufile_worker(const Job& job, unsigned number, std::span<Slot> slots, Sink* sink) {
  return std::make_unique<CuFileWorker>(job, number, slots, dynamic_cast<CuFileSink*>(sink));
}

}  // namespace lanewise::storage
