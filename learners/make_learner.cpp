// The registry of algorithms, and the symbol that programs look up in libtroupe_learners.so.
#include <exception>

#include "learners/d4pg/learner.hpp"
#include "learners/d4pg/parameter_shard.hpp"
#include "learners/gan/gan_learner.hpp"
#include "learners/learner.hpp"
#include "learners/null_learner.hpp"
#include "learners/supervised/classifier.hpp"
#include "learners/validate.hpp"

namespace troupe::learners {

Result<std::unique_ptr<Learner>> make_learner(const std::string& algorithm,
                                              const LearnerOptions& options,
                                              const LearnerContext& context) try {
  if (algorithm == "resnet")
    return Classifier::create(options.resnet, options, context.pictures, context);
  if (algorithm == "sngan")
    return GanLearner::create(options.sngan, options, context.pictures, context);
  if (Result<void> valid = validate(options); !valid) return tl::unexpected(valid.error());
  if (algorithm == "null") return make_null_learner(options, context);
  if (algorithm == "d4pg") {
    if (Result<void> valid = validate_d4pg_spec(context.spec); !valid)
      return tl::unexpected(valid.error());
    return std::make_unique<D4pgLearner>(options, context);
  }
  return fail(ErrorCode::kNotFound,
              "There is no learner '" + algorithm + "'; there are d4pg, resnet, sngan and null.");
} catch (const std::exception& error) {
  return fail(ErrorCode::kInternal,
              "The learner '" + algorithm + "' cannot be made: " + error.what());
}

Result<std::unique_ptr<ParameterShard>> make_parameter_shard(const std::string& algorithm,
                                                             const LearnerOptions& options,
                                                             const LearnerContext& context,
                                                             const ParameterShardPlace& place) try {
  if (algorithm != "d4pg")
    return fail(ErrorCode::kNotFound, "There are no parameter servers of '" + algorithm + "'.");
  if (Result<void> valid = validate(options); !valid) return tl::unexpected(valid.error());
  if (Result<void> valid = validate_d4pg_spec(context.spec); !valid)
    return tl::unexpected(valid.error());
  const D4pgModel model = make_d4pg_model(context.spec.observation_size(),
                                          context.spec.action.elements(), options.d4pg);
  const std::size_t arrays =
      model.policy_layout.segments.size() + model.critic_layout.segments.size();
  if (place.servers < 1 || static_cast<std::size_t>(place.servers) > arrays || place.server < 0 ||
      place.server >= place.servers)
    return fail(ErrorCode::kInvalidArgument,
                "The " + std::to_string(arrays) +
                    " arrays of both networks cannot be divided over " +
                    std::to_string(place.servers) + " parameter servers.");
  return std::make_unique<D4pgParameterShard>(model, place);
} catch (const std::exception& error) {
  return fail(ErrorCode::kInternal,
              std::string("The parameter server cannot be made: ") + error.what());
}

}  // namespace troupe::learners

extern "C" __attribute__((visibility("default")))
troupe::Result<std::unique_ptr<troupe::learners::Learner>>
troupe_make_learner(const std::string& algorithm, const troupe::learners::LearnerOptions& options,
                    const troupe::learners::LearnerContext& context) {
  return troupe::learners::make_learner(algorithm, options, context);
}

extern "C" __attribute__((visibility("default")))
troupe::Result<std::unique_ptr<troupe::learners::ParameterShard>>
troupe_make_parameter_shard(const std::string& algorithm,
                            const troupe::learners::LearnerOptions& options,
                            const troupe::learners::LearnerContext& context,
                            const troupe::learners::ParameterShardPlace& place) {
  return troupe::learners::make_parameter_shard(algorithm, options, context, place);
}
