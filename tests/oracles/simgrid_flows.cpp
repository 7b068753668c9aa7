// Runs a list of transfers through SimGrid 4.x: the peer of benchmarks/flow_simulation.py and an oracle for it.
// usage: simgrid_flows INPUT OUTPUT [--cfg=...]
// INPUT, text: resource count and capacities; class count, then for each class its resource count and their indices
// (coefficient 1, in the order of the path); transfer count, then "class bytes start" for each, by start.
// OUTPUT, text: seconds of wall time in the event loop, peak memory before and after it in KiB, then each finish.
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace s4u = simgrid::s4u;

struct Path {
  s4u::Host* from;
  s4u::Host* to;
};
struct Transfer {
  std::size_t flow_class;
  std::uint64_t bytes;
  double start;
};

// Not ru_maxrss: that starts at the peak of the process that started this one.
static long peak_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "VmHWM:") {
  }
  long kib = 0;
  status >> kib;
  return kib;
}

// Each class gets two hosts of its own, joined by a route over the shared links.
static std::vector<Path> read_platform(std::ifstream& in, s4u::NetZone* zone) {
  std::size_t count;
  in >> count;
  std::vector<const s4u::Link*> links(count);
  for (std::size_t r = 0; r < count; ++r) {
    double capacity;
    in >> capacity;
    links[r] = zone->add_link("link" + std::to_string(r), capacity)->set_latency(0.0)->seal();
  }
  in >> count;
  std::vector<Path> paths(count);
  for (std::size_t k = 0; k < count; ++k) {
    std::size_t uses;
    in >> uses;
    std::vector<s4u::LinkInRoute> route;
    for (std::size_t i = 0; i < uses; ++i) {
      std::size_t r;
      in >> r;
      route.emplace_back(links[r]);
    }
    paths[k] = {zone->add_host("from" + std::to_string(k), 1e9)->seal(),
                zone->add_host("to" + std::to_string(k), 1e9)->seal()};
    zone->add_route(paths[k].from, paths[k].to, route, false);
  }
  return paths;
}

// Starts each transfer at its time. SimGrid reports the end of a transfer only while someone holds it, so it is held
// until then and let go afterwards.
static void feed(const std::vector<Path>& paths, const std::vector<Transfer>& transfers,
                 std::vector<double>& finishes) {
  std::vector<s4u::CommPtr> held(transfers.size());
  std::vector<std::size_t> ended;
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Transfer& transfer = transfers[i];
    if (transfer.start > s4u::Engine::get_clock()) s4u::this_actor::sleep_until(transfer.start);
    for (const std::size_t e : ended) held[e] = nullptr;
    ended.clear();
    const Path& path = paths[transfer.flow_class];
    held[i] = s4u::Comm::sendto_init(path.from, path.to)->set_payload_size(transfer.bytes);
    held[i]->on_this_completion_cb([i, &finishes, &ended](auto const&) {
      finishes[i] = s4u::Engine::get_clock();
      ended.push_back(i);
    });
    held[i]->start();
  }
  for (const auto& comm : held) {
    if (comm) comm->wait();
  }
}

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  std::ifstream in(argv[1]);
  auto* zone = engine.get_netzone_root()->add_netzone_full("net");
  const auto paths = read_platform(in, zone);
  auto* driver = zone->add_host("driver", 1e9)->seal();
  zone->seal();
  std::size_t count;
  in >> count;
  std::vector<Transfer> transfers(count);
  for (auto& t : transfers) in >> t.flow_class >> t.bytes >> t.start;
  std::vector<double> finishes(count, -1.0);
  driver->add_actor("feed", [&] { feed(paths, transfers, finishes); });
  const long before = peak_kib();
  const auto began = std::chrono::steady_clock::now();
  engine.run();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
  std::ofstream out(argv[2]);
  out << std::setprecision(17) << wall.count() << "\n" << before << " " << peak_kib() << "\n";
  for (const double finish : finishes) out << finish << "\n";
}
