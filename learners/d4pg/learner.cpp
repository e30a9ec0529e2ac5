// Implements updates and publication; groups are in learner_group.cpp, checkpoints in
// learner_checkpoint.cpp.
#include "learners/d4pg/learner.hpp"

#include <stdexcept>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

constexpr std::uint64_t kCompareEvery = 100;  // updates of a group

BatchRows slice(const BatchRows& rows, std::int64_t first, std::int64_t count,
                const D4pgModel& model) {
  BatchRows part = rows;
  part.count = count;
  part.observation += first * model.observation;
  part.next_observation += first * model.observation;
  part.action += first * model.action;
  part.reward += first;
  part.discount += first;
  part.weight += first;
  return part;
}

}  // namespace

D4pgLearner::D4pgLearner(const LearnerOptions& options, const LearnerContext& context)
    : options_(options),
      context_(context),
      model_(make_d4pg_model(context.spec.observation_size(), context.spec.action.elements(),
                             options.d4pg)),
      statistics_(model_.observation),
      random_(stream_seed(context.seed, "learner")) {
  const auto replicas = static_cast<int>(options.replicas);
  const StepContext step{.max_rows = model_.options.batch / replicas,
                         .threads = options.threads,
                         .deterministic = context.deterministic};
  replicas_.resize(static_cast<std::size_t>(replicas));
  totals_.resize(replicas_.size());
  // Replicas are made on the threads that use them, so that their memory lies near.
  const Result<void> made = replicate({}).and_then([&] {
    return replicator_->run([&](int i, ReplicaContext&) {
      replicas_[static_cast<std::size_t>(i)] =
          std::make_unique<D4pgReplica>(model_, step, context_.seed);
    });
  });
  if (!made) throw std::runtime_error(made.error().message);
  if (model_.options.normalise_observations) rescale();
}

std::vector<Column> D4pgLearner::batch_columns() const {
  return {{"observation", DType::kF32, {model_.observation}},
          {"action", DType::kF32, {model_.action}},
          {"reward", DType::kF32, {}},
          {"discount", DType::kF32, {}},
          {"next_observation", DType::kF32, {model_.observation}},
          {"weight", DType::kF32, {}}};
}

Result<void> D4pgLearner::check(const replay::Batch& batch) const {
  if (batch.items() != batch_size())
    return fail(ErrorCode::kInvalidArgument, "The learner takes batches of " +
                                                 std::to_string(batch_size()) + " items, not " +
                                                 std::to_string(batch.items()) + ".");
  for (const Column& wanted : batch_columns()) {
    const int index = batch.find(wanted.name);
    if (index < 0)
      return fail(ErrorCode::kInvalidArgument, "The batch has no column '" + wanted.name + "'.");
    if (batch.columns()[static_cast<std::size_t>(index)] != wanted)
      return fail(ErrorCode::kInvalidArgument,
                  "Column '" + wanted.name + "' of the batch has another type or shape.");
  }
  return {};
}

BatchRows D4pgLearner::rows_of(const replay::Batch& batch) {
  std::span<const float> observation = batch.floats("observation");
  std::span<const float> next = batch.floats("next_observation");
  if (scale_) {
    const std::span<float> scaled = std::span(scaled_).first(observation.size());
    const std::span<float> next_scaled = std::span(next_scaled_).first(next.size());
    scale_->apply(observation, scaled);
    scale_->apply(next, next_scaled);
    observation = scaled;
    next = next_scaled;
  }
  return {.count = batch.items(),
          .global_count = model_.options.batch,
          .observation = observation.data(),
          .action = batch.floats("action").data(),
          .reward = batch.floats("reward").data(),
          .discount = batch.floats("discount").data(),
          .next_observation = next.data(),
          .weight = batch.floats("weight").data()};
}

Result<UpdateReport> D4pgLearner::update(const replay::Batch& batch) {
  if (!replicator_) return fail(ErrorCode::kUnavailable, "The learner is between two groups.");
  if (Result<void> fits = check(batch); !fits) return tl::unexpected(fits.error());
  if (Result<void> shared = share_statistics(); !shared) return tl::unexpected(shared.error());
  const BatchRows rows = rows_of(batch);
  if (unsettled_ != Unsettled::kNothing)
    return fail(ErrorCode::kInvalidArgument, "The learner's last update is not settled.");
  // Versions of an asynchronous learner leave out those that others make.
  const std::uint64_t number = (group_.asynchronous ? made_ : version()) + 1;
  const bool metrics = number % static_cast<std::uint64_t>(options_.metrics_every) == 0;
  std::vector<float> losses(static_cast<std::size_t>(rows.count));
  const Result<void> updated = replicator_->step([&](int i, ReplicaContext& context) {
    const auto index = static_cast<std::size_t>(i);
    const std::int64_t first = rows_before(i) - rows_before(0);
    const std::int64_t count = rows_before(i + 1) - rows_before(i);
    const auto part =
        std::span(losses).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    D4pgReplica& replica = *replicas_[index];
    return replica.compute(context, slice(rows, first, count, model_), part, metrics)
        .map([&](const UpdateTotals& totals) {
          totals_[index] = totals;
          if (group_.asynchronous)
            replica.clip(totals);
          else
            replica.apply(totals);
        });
  });
  if (!updated) return tl::unexpected(updated.error());
  ++made_;
  if (group_.asynchronous) unsettled_ = Unsettled::kUpdate;
  UpdateReport done = report(std::move(losses), metrics);
  if (group_.asynchronous) return done;
  if (done.compared = group_.size > 1 && version() % kCompareEvery == 0; done.compared)
    if (Result<void> equal = compare(); !equal) return tl::unexpected(equal.error());
  return done;
}

UpdateReport D4pgLearner::report(std::vector<float> losses, bool metrics) const {
  UpdateReport report;
  report.version = version();
  report.priorities = std::move(losses);
  if (!metrics) return report;
  const UpdateTotals& totals = totals_.front();  // equal on every replica
  const StepOutputs& sums = totals.sums;
  const auto items = static_cast<double>(model_.options.batch);
  report.metrics = {{"critic_loss", sums.critic_loss / items},
                    {"policy_loss", sums.policy_loss / items},
                    {"q_mean", sums.q / items},
                    {"target_mean", sums.target_q / items},
                    {"target_clipped_share", sums.clipped_mass / items},
                    {"action_gradient_clipped_share",
                     sums.action_gradient_clipped / (items * static_cast<double>(model_.action))},
                    {"critic_gradient_norm", totals.critic_norm},
                    {"policy_gradient_norm", totals.policy_norm}};
  return report;
}

models::ParameterSetPtr D4pgLearner::parameters() const {
  auto set = std::make_shared<models::ParameterSet>();
  set->learner_epoch = context_.epoch;
  set->version = version();
  set->policy = model_.policy;
  const float* values = replicas_.front()->networks().policy.values().const_data_ptr<float>();
  for (const models::Segment& segment : model_.policy_layout.segments) {
    const float* first = values + segment.offset;
    set->arrays[segment.name] = {segment.shape, {first, first + segment.elements}};
  }
  if (scale_) {
    const std::vector<double> variance = statistics_.variance();
    const std::vector<double>& mean = statistics_.mean();
    set->arrays[models::kNormaliserMean] = {{model_.observation}, {mean.begin(), mean.end()}};
    set->arrays[models::kNormaliserVariance] = {{model_.observation},
                                                {variance.begin(), variance.end()}};
  }
  return set;
}

Result<void> D4pgLearner::merge_observations(std::span<const std::uint8_t> delta) {
  if (!scale_) return {};
  const Result<models::RunningStatistics> decoded = models::RunningStatistics::decode(delta);
  if (!decoded) return tl::unexpected(decoded.error());
  if (Result<void> merged = statistics_.merge(*decoded); !merged) return merged;
  merged_ = true;
  rescale();
  return {};
}

void D4pgLearner::rescale() {
  // In float as it is published, so that learner and actors scale with the same bits.
  const std::vector<double> variance = statistics_.variance();
  const std::vector<float> mean_values(statistics_.mean().begin(), statistics_.mean().end());
  const std::vector<float> variance_values(variance.begin(), variance.end());
  scale_.emplace(mean_values, variance_values);
  scaled_.resize(static_cast<std::size_t>(model_.options.batch * model_.observation));
  next_scaled_.resize(scaled_.size());
}

std::uint64_t D4pgLearner::state_hash(int replica) const {
  return replicas_.at(static_cast<std::size_t>(replica))->state_hash();
}

}  // namespace troupe::learners
