// Implements the making of learners.
#include "actors/roles/learner_setup.hpp"

#include <filesystem>

#include "actors/config/checks.hpp"
#include "actors/roles/update_link.hpp"
#include "envs/registry.hpp"
#include "envs/spec/random.hpp"
#include "learners/loader.hpp"

namespace troupe::actors {
namespace {

// Optimizer state lies with parameter servers or with learners, and does not move.
Result<void> check_regime(const RunOptions& options, const std::filesystem::path& directory) {
  const bool served = std::filesystem::exists(directory / snapshot_name(0));
  if (served == is_asynchronous(options)) return {};
  return fail(
      ErrorCode::kInvalidArgument,
      directory.string() +
          (served ? " holds parts of parameter servers" : " holds no parts of parameter servers") +
          ", but learners.sync is " + options.learners.sync +
          "; a run keeps whether its learners are all in sync");
}

}  // namespace

Result<LearnerSetup> set_up_learner(const RoleContext& context) {
  const RunOptions& options = context.options;
  auto env =
      envs::make_env(options.environment.name, {.time_limit = options.environment.time_limit});
  if (!env) return tl::unexpected(env.error());
  LearnerSetup setup{.spec = (*env)->spec(), .learner = nullptr};
  const auto factory = learners::load_learning_library();
  if (!factory) return tl::unexpected(factory.error());
  auto learner =
      (*factory)(options.job, options.learners.learner,
                 {.spec = setup.spec,
                  .seed = stream_seed(static_cast<std::uint64_t>(options.seed), "learner"),
                  .epoch = context.assignment.epoch,
                  .deterministic = options.deterministic,
                  .pictures = {}});
  if (!learner) return tl::unexpected(learner.error());
  setup.learner = std::move(*learner);
  const std::string& from = context.assignment.restore_directory;
  if (from.empty()) return setup;
  if (auto same = check_regime(options, from); !same) return tl::unexpected(same.error());
  if (auto loaded = setup.learner->load(from); !loaded) return tl::unexpected(loaded.error());
  return setup;
}

}  // namespace troupe::actors
