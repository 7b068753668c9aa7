// What a scenario may say. Messages name services, pools and workers by number: names belong to the caller.
#include <cmath>
#include <string>

#include "serve/simulator.hpp"

namespace lanewise::serve {
namespace {

using sim::BadInput;

void expect(bool fine, const std::string& cause, const std::string& hint) {
  if (!fine) throw BadInput(cause, hint);
}

bool usable(double value) { return value >= 0.0 && value <= 1e60; }

std::string nth(const char* what, std::size_t index) { return std::string(what) + " " + std::to_string(index); }

void check_leg(const sim::Network& network, const Leg& leg, const std::string& owner) {
  const auto classes = static_cast<std::int32_t>(network.classes().size());
  expect(leg.flow_class >= kNoFlow && leg.flow_class < classes,
         owner + " moves data in flow class " + std::to_string(leg.flow_class),
         "flow classes count from 0; -1 is none");
  expect(usable(leg.bytes) && usable(leg.setup) && usable(leg.setup_each) && usable(leg.latency) && leg.alone > 0.0,
         owner + " has a size, time or rate that is none", "give bytes, seconds and B/s of zero or more");
  expect(leg.slots >= 1 && leg.most >= 1, owner + " has no slot to move data in", "give at least one slot and sample");
}

void check_service(const Service& service, std::size_t s, double duration) {
  const std::string name = nth("service", s);
  if (service.arrivals == Arrivals::kPoisson) {
    expect(service.rate > 0.0 && service.rate * duration < 1e15,
           name + " has a rate of " + sim::show(service.rate) + "/s", "give a rate above zero");
  }
  expect(service.samples >= 1 && service.batch >= 1, name + " has empty queries or batches",
         "give at least one sample");
  expect(service.arrivals != Arrivals::kAtOnce || service.total >= 1, name + " has nothing to answer",
         "give the number of samples");
  expect(usable(service.timeout), name + " has a time-out of " + sim::show(service.timeout) + " s",
         "give seconds of zero or more");
  for (const double variation : {service.variation, service.sample_variation}) {
    expect(variation >= 0.0 && variation <= 1.0, name + " has times that vary by " + sim::show(variation),
           "give coefficients of variation of 0 to 1");
  }
}

void check_worker(const sim::Network& network, const Scenario& scenario, std::size_t w) {
  const Worker& worker = scenario.workers[w];
  const std::string name = nth("worker", w);
  expect(worker.pool >= 0 && static_cast<std::size_t>(worker.pool) < scenario.pools.size(), name + " has no pool",
         "pools count from 0");
  expect(worker.gpu >= 0 && worker.gpu < scenario.gpus, name + " has no GPU", "GPUs count from 0");
  expect(worker.buffers >= 1, name + " has no buffer", "give at least one");
  check_leg(network, worker.copy, name);
  check_leg(network, worker.back, name);
  const auto service =
      scenario.services[static_cast<std::size_t>(scenario.pools[static_cast<std::size_t>(worker.pool)].service)];
  expect(worker.times.size() >= static_cast<std::size_t>(service.batch), name + " knows no time for its largest batch",
         "give a time for each batch size");
  expect(worker.streams >= 1 && worker.streams <= 1000, name + " runs no batch, or more than 1000, at once",
         "give at least one stream");
  expect(worker.shares.empty() || worker.shares.size() == worker.times.size(),
         name + " has shares for other batches than times", "give one for each time, or none");
  for (const double share : worker.shares) {
    expect(share > 0.0 && share <= 1.0, name + " has a batch that uses " + sim::show(share) + " of the GPU",
           "give shares above 0 and up to 1");
  }
  for (const double time : worker.times) {
    expect(time > 0.0 && time < 1e30, name + " serves a batch in " + sim::show(time) + " s", "give times above zero");
  }
}

}  // namespace

void check(const sim::Network& network, const Scenario& scenario) {
  expect(scenario.duration > 0.0 && scenario.duration < 1e30, "a run of " + sim::show(scenario.duration) + " s",
         "give a duration above zero");
  expect(usable(scenario.skip) && scenario.steps >= 0 && scenario.gpus >= 0,
         "a run skips or divides time that it has not, or has fewer GPUs than none", "give zero or more");
  for (std::size_t s = 0; s < scenario.services.size(); ++s) check_service(scenario.services[s], s, scenario.duration);
  std::vector<bool> served(scenario.pools.size()), has_pool(scenario.services.size());
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
    const Pool& pool = scenario.pools[p];
    expect(pool.service >= 0 && static_cast<std::size_t>(pool.service) < scenario.services.size(),
           nth("pool", p) + " has no service", "services count from 0");
    has_pool[static_cast<std::size_t>(pool.service)] = true;
    check_leg(network, pool.arrive, nth("pool", p));
  }
  for (std::size_t w = 0; w < scenario.workers.size(); ++w) {
    check_worker(network, scenario, w);
    served[static_cast<std::size_t>(scenario.workers[w].pool)] = true;
  }
  for (std::size_t p = 0; p < served.size(); ++p) expect(served[p], nth("pool", p) + " has no worker", "give it a GPU");
  for (std::size_t s = 0; s < has_pool.size(); ++s) {
    expect(has_pool[s], nth("service", s) + " has no pool", "give it one");
  }
  for (const Background& each : scenario.background) {
    const bool known = each.flow_class >= 0 && static_cast<std::size_t>(each.flow_class) < network.classes().size();
    expect(known && usable(each.bytes) && usable(each.start) && usable(each.period),
           "background traffic has no class, or a size or time that is none", "give a known class, bytes and seconds");
    expect(each.period == 0.0 || scenario.duration / each.period < 1e9,
           "background traffic that comes again every " + sim::show(each.period) + " s", "give a longer period");
  }
}

}  // namespace lanewise::serve
