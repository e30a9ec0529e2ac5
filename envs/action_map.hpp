// Between policy units and an environment's action bounds. A policy answers in [-1, 1] per
// component; noise may push it outside. Replay stores what was really applied, in policy units: the
// answer clipped to [-1, 1]. A discrete action is one number holding the choice in both units.
// Immutable: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "envs/spec/result.hpp"
#include "envs/spec/spec.hpp"

namespace troupe::envs {

class ActionMap {
 public:
  // Refuses (kInvalidArgument) bounds that are not finite or not ordered, naming the environment,
  // the component and the reason: a policy in [-1, 1] cannot be scaled to them.
  static Result<ActionMap> make(const ActionSpec& spec, std::string_view environment);

  std::int64_t size() const { return static_cast<std::int64_t>(low_.size()); }

  // policy [size] → stored [size]: what replay stores, clipped to [-1, 1] (discrete: rounded and
  // clipped to the choices). They may be the same memory. kNotFinite names the component that is
  // NaN; infinite components clip.
  Result<void> clip(std::span<const float> policy, std::span<float> stored) const;

  // stored [size] → action [size] in the environment's bounds: scaled, then clipped against
  // rounding. -1 and 1 give the bounds exactly. `stored` is an output of clip.
  void to_environment(std::span<const float> stored, std::span<double> action) const;

  // The inverse: action [size] → stored [size]; a component whose bounds are equal gives 0. Actions
  // outside the bounds clip.
  void to_policy(std::span<const double> action, std::span<float> stored) const;

 private:
  ActionMap() = default;
  bool discrete_ = false;
  std::vector<double> low_, high_;
};

}  // namespace troupe::envs
