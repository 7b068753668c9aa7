// What is to be read or written: by how many threads, over which files, into which memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/memory.hpp"
#include "storage/layout.hpp"

namespace lanewise::storage {

enum class Engine { kRing, kSync, kCuFile };

// Memory in which a load ends: of this host, or of a GPU.
struct Target {
  int gpu = -1;
  std::uint64_t bytes = 0;
};

// Where the data of one I/O of a load stays: from `at` of a target on.
struct Place {
  std::uint32_t target;
  std::uint64_t at;
};

struct Job {
  std::vector<Volume> volumes;     // read at the same time; each by its own share of the threads
  std::vector<int> files;          // open, as the mode needs them; pieces name them by their number
  std::vector<int> second_files;   // the same, open for a second reading by other means; may be empty
  std::vector<std::string> names;  // for errors
  std::uint64_t io = 1U << 20;     // bytes of one I/O
  unsigned threads = 1;
  unsigned depth = 1;  // I/Os in flight for each thread
  Engine engine = Engine::kRing;
  bool bounce = false;        // after each read, copy on: into a second buffer, or to the GPU
  int node = host::kAnyNode;  // of the host memory in which the data ends
  int gpu = -1;               // whose memory it ends in instead
  std::string cuda = "libcuda.so.1";
  std::string cufile = "libcufile.so.0";
  std::vector<int> cpus;        // the threads are kept on; none: anywhere
  std::vector<Target> targets;  // of a load; none: data ends in the buffers
  std::vector<Place> places;    // of a load, for each of the volume's chunks
};

constexpr std::uint64_t kPage = 4096;

// From one buffer to the next.
inline std::uint64_t stride(const Job& job) { return (job.io + kPage - 1) / kPage * kPage; }

// What the buffers of a round hold.
enum class Data {
  kAny,      // nobody looks
  kFilled,   // every word keyed by its place: written so, or read and compared
  kStamped,  // one word of each page keyed by its place, likewise
  kReread,   // read and compared with a second reading
};

// One go over the data: the `count` I/Os that make up each volume or `most` of them (0: all), or for so many seconds,
// begun anew at the end.
struct Task {
  std::uint64_t count = 1;
  std::uint64_t most = 0;
  double seconds = 0.0;
  bool write = false;
  bool random = false;
  std::uint64_t seed = 0;
  std::uint64_t salt = 0;  // tells the data of one round of writing from that of another
  Data data = Data::kAny;
  bool read = true;  // without it nothing is read: what the buffers hold is copied on, and compared
  bool keep = true;  // whether data is copied on to where it ends
};

struct Outcome {
  double window = 0.0;                   // s until the first volume was done, or time was up
  double makespan = 0.0;                 // s until the last I/O was done
  std::vector<std::uint64_t> in_window;  // bytes of each file
  std::vector<std::uint64_t> bytes;      // of each file until the end
  std::vector<float> times;              // s of each I/O, from when it was handed over until its data was there
};

}  // namespace lanewise::storage
