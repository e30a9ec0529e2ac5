#include "learners/supervised/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::learners {
namespace {

// How far from `begin` to `end`, 0 to 1.
double progress(std::int64_t number, std::int64_t begin, std::int64_t end) {
  if (number <= begin) return 0;
  return std::min(1.0, static_cast<double>(number - begin) / static_cast<double>(end - begin));
}

}  // namespace

Result<void> check(const ScheduleOptions& options) {
  const auto refuse = [](const std::string& what) {
    return fail(ErrorCode::kInvalidArgument, "schedule: " + what);
  };
  if (!std::is_sorted(options.steps.begin(), options.steps.end(), std::less_equal<>()))
    return refuse("steps do not grow");
  if (options.decay == "step" && options.steps.empty())
    return refuse("decay is step but steps is empty");
  const std::int64_t begin = options.decay == "linear" ? options.decay_from : options.warm_up;
  if ((options.decay == "cosine" || options.decay == "linear") && options.updates <= begin)
    return refuse("updates is " + std::to_string(options.updates) + ", but " + options.decay +
                  " decay begins at " + std::to_string(begin));
  return {};
}

double learning_rate(const ScheduleOptions& options, std::int64_t number,
                     std::int64_t global_batch) {
  double rate = options.rate;
  if (options.per_batch > 0)
    rate *= static_cast<double>(global_batch) / static_cast<double>(options.per_batch);
  if (number < options.warm_up)
    return rate * static_cast<double>(number + 1) / static_cast<double>(options.warm_up);
  if (options.decay == "cosine")
    return rate * 0.5 *
           (1 + std::cos(std::numbers::pi * progress(number, options.warm_up, options.updates)));
  if (options.decay == "linear")
    return rate * (1 - progress(number, options.decay_from, options.updates));
  if (options.decay == "step")
    for (const std::int64_t step : options.steps)
      if (number >= step) rate *= options.step_factor;
  return rate;
}

}  // namespace troupe::learners
