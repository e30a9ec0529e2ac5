// Puts a simulated run together.
#include "actors/simulation/world.hpp"

#include <algorithm>

#include "actors/simulation/actor_model.hpp"
#include "actors/simulation/learner_model.hpp"
#include "actors/simulation/shard_model.hpp"
#include "replay/limiter_check.hpp"

namespace troupe::actors::simulation {
namespace {

double buffer_of(const Options& o) {
  return o.error_buffer > 0 ? o.error_buffer
                            : 0.1 * static_cast<double>(o.min_size) * o.samples_per_insert;
}

// Cores that are busy most of the time, whatever the environment actors do.
constexpr double kLearnerLoad = 1.5, kShardLoad = 0.5, kCoordinatorLoad = 0.3;

}  // namespace

World::World(const Options& given)
    : options(given),
      error_buffer(buffer_of(given)),
      flush_steps(replay::flush_steps(replay::band_items(error_buffer, given.samples_per_insert),
                                      given.actors, given.credit)),
      network(engine, static_cast<std::size_t>(given.hosts), {given.latency, given.bandwidth},
              {given.local_latency, given.local_bandwidth}),
      random(stream_seed(static_cast<std::uint64_t>(given.seed), "simulation")) {
  const Options& o = options;
  for (std::int64_t i = 0; i < o.hosts; ++i)
    hosts.emplace_back(engine, static_cast<int>(o.cores), o.full_speed);
  for (std::int64_t i = 0; i < o.shards; ++i) {
    shards.push_back(std::make_unique<ShardModel>(*this, i, host_of_shard(i)));
    if (!o.shards_with_learner) hosts[host_of_shard(i)].add_background(o.poll + o.node);
  }
  learners = std::make_unique<LearnersModel>(*this);
  const std::vector<std::size_t> places = place_actors();
  for (std::int64_t i = 0; i < o.actors; ++i) {
    const std::size_t host = places[static_cast<std::size_t>(i)];
    actors.push_back(std::make_unique<ActorModel>(*this, static_cast<std::uint32_t>(i), host));
    hosts[host].add_background(o.node);
  }
  hosts[0].add_background(o.shared);
}

World::~World() = default;

std::size_t World::host_of_learner(std::int64_t learner) const {
  return static_cast<std::size_t>(learner % options.hosts);
}

std::size_t World::host_of_shard(std::int64_t shard) const {
  if (options.shards_with_learner) return host_of_learner(0);
  return static_cast<std::size_t>((options.learners + shard) % options.hosts);
}

std::vector<std::size_t> World::place_actors() {
  std::vector<double> load(hosts.size());
  load[0] += kCoordinatorLoad;
  for (std::int64_t i = 0; i < options.learners; ++i) load[host_of_learner(i)] += kLearnerLoad;
  for (std::int64_t i = 0; i < options.shards; ++i) load[host_of_shard(i)] += kShardLoad;
  std::vector<std::size_t> places;
  for (std::int64_t i = 0; i < options.actors; ++i) {
    const auto least =
        static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[least] += 1;
    places.push_back(least);
  }
  return places;
}

double nap_after(double idle_seconds) {
  constexpr double kLively = 0.010, kShort = 155e-6, kLong = 1060e-6;
  return idle_seconds < kLively ? kShort : kLong;
}

}  // namespace troupe::actors::simulation
