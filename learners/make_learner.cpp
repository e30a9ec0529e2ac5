// The registry of algorithms, and the symbol that programs look up in libtroupe_learners.so.
#include <exception>

#include "learners/d4pg/learner.hpp"
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

}  // namespace troupe::learners

extern "C" __attribute__((visibility("default")))
troupe::Result<std::unique_ptr<troupe::learners::Learner>>
troupe_make_learner(const std::string& algorithm, const troupe::learners::LearnerOptions& options,
                    const troupe::learners::LearnerContext& context) {
  return troupe::learners::make_learner(algorithm, options, context);
}
