// What all parts of a simulated run share, and where each of them lives. One owner.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "actors/simulation/engine.hpp"
#include "actors/simulation/host.hpp"
#include "actors/simulation/network.hpp"
#include "actors/simulation/options.hpp"
#include "envs/spec/random.hpp"

namespace troupe::actors::simulation {

class ActorModel;
class ShardModel;
class LearnersModel;

struct World {
  explicit World(const Options& options);
  ~World();

  const Options options;
  const double error_buffer;       // samples
  const std::int64_t flush_steps;  // of a chunk, by the run's own rule
  Engine engine;
  std::deque<Host> hosts;
  Network network;
  Random random;
  std::vector<std::unique_ptr<ShardModel>> shards;
  std::unique_ptr<LearnersModel> learners;
  std::vector<std::unique_ptr<ActorModel>> actors;

  // Learners have the first hosts, the coordinator lives with the first of them, shards of their
  // own have the next ones, and environment actors fill up what is least laden.
  std::size_t host_of_learner(std::int64_t learner) const;
  std::size_t host_of_shard(std::int64_t shard) const;

 private:
  std::vector<std::size_t> place_actors();
};

// How long a thread that looks at several channels sleeps between two looks (actors/roles/nap.hpp,
// with the kernel's delay), by the time since something last came.
double nap_after(double idle_seconds);

}  // namespace troupe::actors::simulation
