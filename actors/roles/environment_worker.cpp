// Implements the environment actor's work.
#include "actors/roles/environment_worker.hpp"

#include "envs/spec/random.hpp"
#include "replay/bytes.hpp"

namespace troupe::actors {
namespace {

constexpr std::uint32_t kStateVersion = 1;

}  // namespace

Result<std::unique_ptr<EnvironmentWorker>> EnvironmentWorker::make(const WorkerOptions& options) {
  // The incarnation is part of the seed: a restarted worker does not repeat its predecessor's
  // episodes.
  auto env = envs::VectorEnv::make(
      options.environment, {.time_limit = options.time_limit}, options.environments,
      stream_seed(options.seed, "environment", options.incarnation), options.worker);
  if (!env) return tl::unexpected(env.error());
  std::unique_ptr<EnvironmentWorker> worker(new EnvironmentWorker(options, std::move(*env)));
  if (auto reset = worker->env_->reset(worker->observations_); !reset)
    return tl::unexpected(reset.error());
  return worker;
}

EnvironmentWorker::EnvironmentWorker(const WorkerOptions& options,
                                     std::unique_ptr<envs::VectorEnv> env)
    : options_(options),
      env_(std::move(env)),
      signature_(replay::signature_of(env_->spec())),
      noise_(options.sigma,
             Random(stream_seed(stream_seed(options.seed, "noise", options.incarnation), "worker",
                                options.worker))),
      statistics_(env_->observation_size()) {
  const auto count = static_cast<std::size_t>(env_->count());
  observations_.resize(count * static_cast<std::size_t>(env_->observation_size()));
  next_observations_.resize(observations_.size());
  actions_.resize(count * static_cast<std::size_t>(env_->action_size()));
  for (std::uint32_t i = 0; i < count; ++i)
    builders_.emplace_back(signature_, options.worker, options.incarnation, i, options.flush_steps);
}

Result<void> EnvironmentWorker::set_parameters(models::ParameterSetPtr set) {
  auto policy = models::DensePolicy::make(*set, env_->count());
  if (!policy) return tl::unexpected(policy.error());
  if (policy->inputs() != env_->observation_size() || policy->outputs() != env_->action_size())
    return fail(ErrorCode::kInvalidArgument, "a policy of " + std::to_string(policy->inputs()) +
                                                 " inputs and " +
                                                 std::to_string(policy->outputs()) +
                                                 " outputs does not fit " + options_.environment);
  policy_ = std::move(*policy);
  parameters_ = std::move(set);
  return {};
}

Result<void> EnvironmentWorker::step(Time now) {
  policy_->act(observations_, actions_);
  noise_.apply(actions_);
  const auto results = env_->step(actions_, next_observations_);
  if (!results) return tl::unexpected(results.error());
  for (std::size_t i = 0; i < results->size(); ++i)
    record(static_cast<std::int64_t>(i), (*results)[i], now);
  std::swap(observations_, next_observations_);
  return {};
}

// observations_ still holds what the environment was acted on with.
void EnvironmentWorker::record(std::int64_t environment, const envs::StepResult& result, Time now) {
  const auto index = static_cast<std::size_t>(environment);
  SegmentBuilder& builder = builders_[index];
  if (result.invalid) {
    builder.abandon();
    faults_.push_back(result.reason);
    return;
  }
  const auto size = static_cast<std::size_t>(env_->observation_size());
  const auto width = static_cast<std::size_t>(env_->action_size());
  const std::span<const float> observation(observations_.data() + index * size, size);
  builder.add(observation, env_->applied_actions().subspan(index * width, width),
              static_cast<float>(result.reward), parameters_->version, parameters_->learner_epoch,
              now);
  if (options_.gather_statistics)
    (void)statistics_.add(observation);  // finite: VectorEnv has checked
  if (!result.ended()) return;
  builder.end(result.terminated ? replay::EpisodeEnd::kTerminated : replay::EpisodeEnd::kTruncated,
              env_->final_observation(environment));
  episodes_.push_back(
      {environment, result.episode_return, result.episode_steps, parameters_->version});
}

std::optional<replay::Chunk> EnvironmentWorker::take_chunk(Time now,
                                                           std::chrono::milliseconds max_age) {
  for (SegmentBuilder& builder : builders_) {
    if (auto chunk = builder.take(now, max_age)) {
      chunk->header.sequence = sequence_++;
      return chunk;
    }
  }
  return std::nullopt;
}

std::optional<FinishedEpisode> EnvironmentWorker::take_episode() {
  if (episodes_.empty()) return std::nullopt;
  const FinishedEpisode episode = episodes_.front();
  episodes_.pop_front();
  return episode;
}

std::optional<std::string> EnvironmentWorker::take_fault() {
  if (faults_.empty()) return std::nullopt;
  std::string fault = std::move(faults_.front());
  faults_.pop_front();
  return fault;
}

std::vector<std::uint8_t> EnvironmentWorker::take_statistics() {
  if (statistics_.count() == 0) return {};
  std::vector<std::uint8_t> bytes = statistics_.encode();
  statistics_.clear();
  return bytes;
}

std::vector<std::uint8_t> EnvironmentWorker::save() const {
  std::vector<std::uint8_t> out;
  replay::ByteWriter writer(out);
  writer.put(kStateVersion);
  writer.put(signature_.spec_hash);
  writer.put(sequence_);
  for (const std::uint64_t word : noise_.state()) writer.put(word);
  writer.array(std::span<const std::uint8_t>(env_->save_state()));
  for (const SegmentBuilder& builder : builders_) {
    std::vector<std::uint8_t> open;
    builder.save(open);
    writer.array(std::span<const std::uint8_t>(open));
  }
  writer.array(std::span<const std::uint8_t>(statistics_.encode()));
  return out;
}

Result<void> EnvironmentWorker::load(std::span<const std::uint8_t> bytes) {
  replay::ByteReader reader(bytes);
  if (reader.take<std::uint32_t>() != kStateVersion)
    return fail(ErrorCode::kCorrupt, "the saved environment state is of another version");
  if (reader.take<std::uint64_t>() != signature_.spec_hash)
    return fail(ErrorCode::kCorrupt, "the saved environment state is of another environment");
  const auto sequence = reader.take<std::uint64_t>();
  Random::State noise{};
  for (std::uint64_t& word : noise) word = reader.take<std::uint64_t>();
  std::vector<std::uint8_t> environment, statistics;
  reader.array(environment);
  std::vector<SegmentBuilder> builders = builders_;
  for (SegmentBuilder& builder : builders) {
    std::vector<std::uint8_t> open;
    reader.array(open);
    if (auto loaded = builder.load(open); !loaded) return loaded;
  }
  reader.array(statistics);
  if (!reader.finished())
    return fail(ErrorCode::kCorrupt, "the saved environment state is cut short or too long");
  auto gathered = models::RunningStatistics::decode(statistics);
  if (!gathered) return tl::unexpected(gathered.error());
  if (auto loaded = env_->load_state(environment, observations_); !loaded) {
    (void)env_->reset(observations_);
    return loaded;
  }
  builders_ = std::move(builders);
  statistics_ = std::move(*gathered);
  noise_.set_state(noise);
  sequence_ = sequence;
  return {};
}

}  // namespace troupe::actors
