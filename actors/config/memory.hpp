// How much memory a run's data may take at most, before anything starts: the sum that back-pressure
// guarantees. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/config/run_options.hpp"
#include "envs/spec/spec.hpp"

namespace troupe::actors {

struct MemoryTerm {
  std::string name;     // "segments under way"
  std::string formula;  // with the numbers: "2 actors x 2 credit x 12 steps x 40 B"
  double bytes = 0;
};

// workers x credit x blob + tables + prefetch x batch + 2 x parameters, and what parameter servers
// hold, over all processes of the run. Tables are full; code, libraries, simulators and the
// learner's gradients and moments come on top.
std::vector<MemoryTerm> memory_terms(const RunOptions& options, const EnvSpec& spec);

// Of a job on pictures: the same without tables. Sets that are read whole come on top.
std::vector<MemoryTerm> memory_terms(const RunOptions& options,
                                     const learners::PictureSpec& pictures);

// Numbers in D4PG's policy and critic for this environment, layer normalisation included.
std::int64_t parameter_count(const learners::D4pgOptions& options, const EnvSpec& spec);

}  // namespace troupe::actors
