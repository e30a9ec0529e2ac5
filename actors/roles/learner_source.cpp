// Implements the choice of options.
#include "actors/roles/learner_source.hpp"

#include <filesystem>

#include "actors/config/checks.hpp"
#include "actors/roles/table_setup.hpp"
#include "envs/spec/files.hpp"

namespace troupe::actors {
namespace {

bool leads(const LearnerSeat* seat) { return seat == nullptr || seat->leads(); }

// A learner that goes back to a checkpoint makes up for the updates it lost. For one that joins
// others each update took one batch.
Result<void> restore(const RoleContext& context, const learners::Learner& learner,
                     const LearnerSeat* seat, GlobalLimiter& limiter) {
  const std::string& from = context.assignment.restore_directory;
  const bool asynchronous = is_asynchronous(context.options);
  // What asynchronous learners have drawn since then the shards know.
  if (from.empty() && asynchronous) return {};
  if (!from.empty() && leads(seat)) {
    const auto bytes = read_file(std::filesystem::path(from) / kLimiterFile);
    if (!bytes) return tl::unexpected(bytes.error());
    return limiter.load(std::string(bytes->begin(), bytes->end()));
  }
  limiter.begin_at(learner.version() *
                   static_cast<std::uint64_t>(context.options.learners.learner.d4pg.batch));
  return {};
}

}  // namespace

Result<SourceOptions> source_options(const RoleContext& context, const learners::Learner& learner,
                                     const LearnerSeat* seat, const std::string& limiter_state) {
  const RunOptions& options = context.options;
  const bool asynchronous = is_asynchronous(options);
  // Who follows goes by what the one that leads its group may sample.
  const replay::LimiterOptions ratio =
      leads(seat) ? global_limiter_options(options)
                  : replay::LimiterOptions{.min_size = options.replay.min_size};
  const std::uint64_t stream = seat == nullptr ? context.assignment.epoch
                                               : std::uint64_t{seat->group().generation} << 32 |
                                                     seat->group().group << 16 | seat->group().rank;
  SourceOptions source{
      .items = learner.batch_size(),
      .counted = asynchronous ? 0 : options.learners.learner.d4pg.batch,
      .ahead = options.learners.learner.prefetch,
      .limiter = GlobalLimiter(ratio, asynchronous),
      .random = Random(stream_seed(static_cast<std::uint64_t>(options.seed), "shares", stream)),
      .follows = asynchronous || !leads(seat),
      .importance_exponent = is_prioritised(options) ? options.replay.importance_exponent : 0,
      .weight_scale = weight_scale(options)};
  const Result<void> restored = limiter_state.empty()
                                    ? restore(context, learner, seat, source.limiter)
                                    : source.limiter.load(limiter_state);
  if (!restored) return tl::unexpected(restored.error());
  return source;
}

std::string sampler_name(const RoleContext& context, const LearnerSeat* seat) {
  if (seat == nullptr) return context.peer_name();
  const bool stands_for_all = seat->leads() && !is_asynchronous(context.options);
  return (stands_for_all ? "learners" : context.node) + "." +
         std::to_string(seat->group().generation);
}

}  // namespace troupe::actors
