// Episodes of the deterministic policy. Pure: the same parameters, task, seed and count give the
// same returns. One owner.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "models/inference/parameter_set.hpp"

namespace troupe::actors {

struct EvaluationPlan {
  std::string environment;
  std::int64_t time_limit = 0;
  std::int64_t episodes = 1;
  std::uint64_t seed = 0;  // of the run; the episodes are the same in every evaluation of it
};

struct EvaluationResult {
  std::vector<double> returns;        // undiscounted, one per episode
  std::vector<std::int64_t> lengths;  // control steps
};

// `keep_going` is asked before every step: false ends it with kUnavailable. An invalid episode is
// an error.
Result<EvaluationResult> evaluate(const EvaluationPlan& plan,
                                  const models::ParameterSet& parameters,
                                  const std::function<bool()>& keep_going);

}  // namespace troupe::actors
