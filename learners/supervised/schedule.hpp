// Learning rates over a run. Pure functions of the update's number: a resumed run continues where
// it was.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "envs/spec/options.hpp"
#include "envs/spec/result.hpp"

namespace troupe::learners {

struct ScheduleOptions {
  double rate = 0.1;             // after warm-up, at a global batch of `per_batch`
  std::int64_t per_batch = 256;  // 0: `rate` whatever the batch
  std::int64_t warm_up = 0;      // updates of linear growth, from rate / warm_up
  std::string decay = "cosine";
  std::int64_t updates = 0;         // in all: where cosine and linear end
  std::int64_t decay_from = 0;      // update at which linear decay begins
  std::vector<std::int64_t> steps;  // of step decay: updates at which ...
  double step_factor = 0.1;         // ... the rate is multiplied by this
};

template <class Visitor>
void describe(Visitor& visitor, ScheduleOptions& options) {
  visitor.field("rate", options.rate, above(0),
                "Learning rate after warm-up, at a global batch of per_batch.");
  visitor.field("per_batch", options.per_batch, at_least(0),
                "The rate grows in proportion to the global batch over this; 0: it does not.");
  visitor.field("warm_up", options.warm_up, at_least(0), "Updates of linear growth at the start.");
  visitor.choice("decay", options.decay, {"constant", "cosine", "linear", "step"},
                 "What the rate does after warm-up.");
  visitor.field("updates", options.updates, at_least(0),
                "Updates in all: where cosine and linear decay reach 0.");
  visitor.field("decay_from", options.decay_from, at_least(0),
                "Update at which linear decay begins.");
  visitor.field("steps", options.steps, at_least(1), "Updates at which step decay takes a step.");
  visitor.field("step_factor", options.step_factor, between(0, 1), "The rate's factor at each.");
}

// kInvalidArgument, naming the option: steps that do not grow, a decay without an end or an end
// before it begins.
Result<void> check(const ScheduleOptions& options);

// Of update `number`, counted from 0, with so many items in each update over all replicas.
double learning_rate(const ScheduleOptions& options, std::int64_t number,
                     std::int64_t global_batch);

}  // namespace troupe::learners
