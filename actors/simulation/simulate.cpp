// Runs a simulated run and takes its figures.
#include "actors/simulation/simulate.hpp"

#include <algorithm>
#include <vector>

#include "actors/simulation/actor_model.hpp"
#include "actors/simulation/learner_model.hpp"
#include "actors/simulation/shard_model.hpp"
#include "actors/simulation/world.hpp"

namespace troupe::actors::simulation {
namespace {

constexpr double kFull = 0.9;  // of a part that limits the rest
constexpr double kBeat = 0.05;

// Everything that grows while a run goes on.
struct Counts {
  double steps = 0, updates = 0, starved = 0, reducing = 0, blocked = 0, sends = 0, receives = 0;
  std::vector<double> cores, shards;
};

Counts count(World& world) {
  Counts counts;
  for (const auto& actor : world.actors) {
    counts.steps += static_cast<double>(actor->acknowledged());
    counts.blocked += actor->blocked();
  }
  counts.updates = static_cast<double>(world.learners->version());
  counts.starved = world.learners->starved();
  counts.reducing = world.learners->reducing();
  counts.sends = world.network.busiest_out();
  counts.receives = world.network.busiest_in();
  for (Host& host : world.hosts) counts.cores.push_back(host.used());
  for (const auto& shard : world.shards) counts.shards.push_back(shard->busy_seconds());
  return counts;
}

// Nodes' messages arrive evenly; a share of a second's at a time.
void coordinate(World& world, double cost) {
  world.hosts[0].run(cost, [] {});
  world.engine.after(kBeat, [&world, cost] { coordinate(world, cost); });
}

std::string limit_of(const Options& options, const Figures& figures) {
  if (figures.coordinator > kFull) return "the coordinator's messages";
  if (figures.sends > kFull) return "what the busiest host sends";
  if (figures.receives > kFull) return "what the busiest host receives";
  if (figures.shard > kFull) return "the shards";
  if (options.samples_per_insert > 0 && figures.learner_starved < 1 - kFull)
    return figures.learner_reducing > 0.5 ? "the learners' all-reduce" : "the learners";
  if (figures.actors_blocked < 1 - kFull) return "the environment actors";
  return "the way between actors, shards and learners";
}

Result<void> check(const Options& options) {
  Options copy = options;
  std::string wrong;
  struct Visitor {
    std::string& wrong;
    void field(const char* name, std::int64_t value, const char*) {
      if (value < (std::string(name) == "min_size" ? 0 : 1)) wrong = name;
    }
    void field(const char* name, double value, const char*) {
      if (!(value >= 0) || value > 1e15) wrong = name;
    }
    void field(const char*, bool, const char*) {}
  } visitor{wrong};
  describe(visitor, copy);
  if (options.bandwidth <= 0) wrong = "bandwidth";
  if (options.local_bandwidth <= 0) wrong = "local_bandwidth";
  if (options.step <= 0) wrong = "step";
  if (options.seconds <= 0) wrong = "seconds";
  if (options.full_speed <= 0 || options.full_speed > 1) wrong = "full_speed";
  if (!wrong.empty())
    return fail(ErrorCode::kInvalidArgument, "the option '" + wrong + "' is out of its range");
  if (options.shards_with_learner && options.learners > 1)
    return fail(ErrorCode::kInvalidArgument,
                "several learners need shards of their own: shards_with_learner false");
  return {};
}

}  // namespace

Result<Figures> simulate(const Options& options) {
  if (auto good = check(options); !good) return tl::unexpected(good.error());
  World world(options);
  Figures figures;
  figures.coordinator = options.message * options.messages * static_cast<double>(options.actors);
  if (figures.coordinator > 0) coordinate(world, figures.coordinator * kBeat);
  world.engine.run_until(options.warm_up);
  const Counts before = count(world);
  world.engine.run_until(options.warm_up + options.seconds);
  const Counts after = count(world);
  const auto share = [&](double Counts::*of) { return (after.*of - before.*of) / options.seconds; };
  figures.actor_steps = share(&Counts::steps);
  figures.updates = share(&Counts::updates);
  figures.learner_starved = share(&Counts::starved);
  figures.learner_reducing = share(&Counts::reducing);
  figures.actors_blocked = share(&Counts::blocked) / static_cast<double>(options.actors);
  figures.sends = share(&Counts::sends);
  figures.receives = share(&Counts::receives);
  figures.samples_per_insert = world.learners->samples_per_insert();
  for (std::size_t i = 0; i < world.hosts.size(); ++i) {
    const double busy =
        (after.cores[i] - before.cores[i]) / options.seconds / static_cast<double>(options.cores);
    figures.cores += busy / static_cast<double>(world.hosts.size());
    figures.busiest_host = std::max(figures.busiest_host, busy);
  }
  for (std::size_t i = 0; i < world.shards.size(); ++i)
    figures.shard = std::max(figures.shard, (after.shards[i] - before.shards[i]) / options.seconds);
  for (const auto& actor : world.actors)
    figures.policy_lag += static_cast<double>(world.learners->version() - actor->version()) /
                          static_cast<double>(options.actors);
  figures.flush_steps = world.flush_steps;
  figures.events = world.engine.events();
  figures.limit = limit_of(options, figures);
  return figures;
}

}  // namespace troupe::actors::simulation
