// Implements evaluation episodes.
#include "actors/roles/evaluation.hpp"

#include <cmath>

#include "envs/action_map.hpp"
#include "envs/registry.hpp"
#include "envs/spec/random.hpp"
#include "models/inference/dense_policy.hpp"

namespace troupe::actors {

Result<EvaluationResult> evaluate(const EvaluationPlan& plan,
                                  const models::ParameterSet& parameters,
                                  const std::function<bool()>& keep_going) {
  auto env = envs::make_env(plan.environment, {.time_limit = plan.time_limit});
  if (!env) return tl::unexpected(env.error());
  const EnvSpec& spec = (*env)->spec();
  const auto map = envs::ActionMap::make(spec.action, spec.name);
  if (!map) return tl::unexpected(map.error());
  auto policy = models::DensePolicy::make(parameters, 1);
  if (!policy) return tl::unexpected(policy.error());
  const auto size = static_cast<std::size_t>(spec.observation_size());
  const auto width = static_cast<std::size_t>(map->size());
  if (policy->inputs() != spec.observation_size() || policy->outputs() != map->size())
    return fail(ErrorCode::kInvalidArgument, "the policy does not fit " + plan.environment);

  std::vector<double> observation(size), action(width);
  std::vector<float> input(size), output(width);
  EvaluationResult result;
  for (std::int64_t episode = 0; episode < plan.episodes; ++episode) {
    const auto seed = stream_seed(plan.seed, "evaluation", static_cast<std::uint64_t>(episode));
    if (auto reset = (*env)->reset(seed); !reset) return tl::unexpected(reset.error());
    double total = 0;
    std::int64_t length = 0;
    while (true) {
      if (!keep_going()) return fail(ErrorCode::kUnavailable, "the evaluation was broken off");
      (*env)->observe(observation);
      for (std::size_t i = 0; i < size; ++i) input[i] = static_cast<float>(observation[i]);
      policy->act(input, output);
      if (auto clipped = map->clip(output, output); !clipped)
        return tl::unexpected(clipped.error());
      map->to_environment(output, action);
      const auto transition = (*env)->step(action);
      if (!transition) return tl::unexpected(transition.error());
      if (!std::isfinite(transition->reward))
        return fail(ErrorCode::kNotFinite,
                    plan.environment + " gave a reward that is not finite in step " +
                        std::to_string(length) + " of an evaluation episode");
      total += transition->reward;
      ++length;
      if (transition->terminated || transition->truncated) break;
    }
    result.returns.push_back(total);
    result.lengths.push_back(length);
  }
  return result;
}

}  // namespace troupe::actors
