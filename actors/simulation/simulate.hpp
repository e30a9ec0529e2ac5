// What a run of some size would do on machines of some size, from the measured cost of each part:
// a simulation of discrete events in which the run's own decisions (segments, send windows,
// routing, the limiter's grants, the sharing of draws) are the product's classes. Thousands of
// environment actors take seconds; the same options give the same figures.
#pragma once

#include <cstdint>
#include <string>

#include "actors/simulation/options.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors::simulation {

// Of the time that was measured. Shares are of that time.
struct Figures {
  double actor_steps = 0, updates = 0;  // a second
  double samples_per_insert = 0;        // since min_size
  double actors_blocked = 0;            // share without credit, mean over environment actors
  double learner_starved = 0;           // share without a batch
  double learner_reducing = 0;          // share of waiting for sums and for the messages before
  double coordinator = 0;               // cores that its messages take
  double cores = 0;                     // share of all cores that are busy
  double busiest_host = 0;              // the same of the busiest host
  double shard = 0;                     // share in which the busiest shard's thread computes
  double sends = 0, receives = 0;       // share of the bandwidth of the busiest host
  double policy_lag = 0;                // updates, mean over environment actors
  std::int64_t flush_steps = 0;         // of a chunk
  std::uint64_t events = 0;             // that were simulated
  std::string limit;                    // what the rates are limited by
};

// kInvalidArgument when an option makes no sense, by name.
Result<Figures> simulate(const Options& options);

}  // namespace troupe::actors::simulation
