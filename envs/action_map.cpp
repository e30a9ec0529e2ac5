// Scaling and clipping of actions.
#include "envs/action_map.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace troupe::envs {

Result<ActionMap> ActionMap::make(const ActionSpec& spec, std::string_view environment) {
  const std::string whose = "environment '" + std::string(environment) + "'";
  ActionMap map;
  map.discrete_ = spec.discrete;
  if (spec.discrete) {
    if (spec.choices < 1 || spec.choices > (1 << 24))
      return fail(ErrorCode::kInvalidArgument,
                  whose + " has " + std::to_string(spec.choices) +
                      " discrete actions; between 1 and 2^24 can be told apart");
    map.low_ = {0};
    map.high_ = {static_cast<double>(spec.choices - 1)};
    return map;
  }
  if (spec.low.empty() || spec.low.size() != spec.high.size())
    return fail(ErrorCode::kInvalidArgument, whose + " has " + std::to_string(spec.low.size()) +
                                                 " lower and " + std::to_string(spec.high.size()) +
                                                 " upper action bounds");
  for (std::size_t i = 0; i < spec.low.size(); ++i) {
    const double low = spec.low[i], high = spec.high[i];
    const std::string which = whose + " has the bounds [" + std::to_string(low) + ", " +
                              std::to_string(high) + "] on action component " + std::to_string(i);
    if (!std::isfinite(low) || !std::isfinite(high))
      return fail(ErrorCode::kInvalidArgument,
                  which + ", which are not finite: a policy in [-1, 1] cannot be scaled to them");
    if (low > high)
      return fail(ErrorCode::kInvalidArgument, which + ", of which the lower is the greater");
  }
  map.low_ = spec.low;
  map.high_ = spec.high;
  return map;
}

Result<void> ActionMap::clip(std::span<const float> policy, std::span<float> stored) const {
  for (std::size_t i = 0; i < low_.size(); ++i) {
    const float value = policy[i];
    if (std::isnan(value))
      return fail(ErrorCode::kNotFinite, "action component " + std::to_string(i) + " is NaN");
    stored[i] = discrete_ ? std::clamp(std::round(value), 0.0F, static_cast<float>(high_[0]))
                          : std::clamp(value, -1.0F, 1.0F);
  }
  return {};
}

void ActionMap::to_environment(std::span<const float> stored, std::span<double> action) const {
  for (std::size_t i = 0; i < low_.size(); ++i) {
    const double value = stored[i], low = low_[i], high = high_[i];
    if (discrete_)
      action[i] = value;
    else if (value <= -1)
      action[i] = low;
    else if (value >= 1)
      action[i] = high;
    else  // halves first: high - low may overflow
      action[i] = std::clamp((low / 2 + high / 2) + value * (high / 2 - low / 2), low, high);
  }
}

void ActionMap::to_policy(std::span<const double> action, std::span<float> stored) const {
  for (std::size_t i = 0; i < low_.size(); ++i) {
    const double half = high_[i] / 2 - low_[i] / 2, middle = low_[i] / 2 + high_[i] / 2;
    if (discrete_)
      stored[i] = static_cast<float>(std::clamp(action[i], low_[i], high_[i]));
    else if (half == 0)
      stored[i] = 0;
    else
      stored[i] = static_cast<float>(std::clamp((action[i] - middle) / half, -1.0, 1.0));
  }
}

}  // namespace troupe::envs
