// What an environment actor does, without actors: steps its environments with the newest policy
// plus exploration noise and turns the steps into chunks. Time is a parameter. One owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/roles/segment_builder.hpp"
#include "envs/vector_env.hpp"
#include "models/inference/dense_policy.hpp"
#include "models/inference/exploration.hpp"
#include "models/inference/normaliser.hpp"
#include "models/inference/parameter_set.hpp"

namespace troupe::actors {

struct WorkerOptions {
  std::string environment;
  std::int64_t time_limit = 0;    // control steps; 0: the task's own
  std::int64_t environments = 1;  // stepped together
  std::uint32_t worker = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t seed = 0;          // of the run
  double sigma = 0;                // exploration noise in [-1, 1] units
  std::int64_t flush_steps = 1;    // steps of one environment per chunk
  bool gather_statistics = false;  // observation statistics for the normaliser
};

struct FinishedEpisode {
  std::int64_t environment = 0;
  double episode_return = 0;  // undiscounted
  std::int64_t length = 0;    // control steps
  std::uint64_t version = 0;  // of the policy at its end
};

class EnvironmentWorker {
 public:
  using Time = SegmentBuilder::Time;

  static Result<std::unique_ptr<EnvironmentWorker>> make(const WorkerOptions& options);

  const replay::Signature& signature() const { return signature_; }

  // The policy that acts from the next step on. kInvalidArgument when it does not fit the
  // environment.
  Result<void> set_parameters(models::ParameterSetPtr set);
  bool has_parameters() const { return policy_.has_value(); }
  std::uint64_t version() const { return parameters_ ? parameters_->version : 0; }

  // One control step of every environment. An error means that an environment cannot be brought to
  // start an episode: the worker is of no more use.
  Result<void> step(Time now);

  // The next chunk to send, numbered; nullopt: none is due. `max_age` zero flushes everything.
  std::optional<replay::Chunk> take_chunk(Time now, std::chrono::milliseconds max_age);
  std::optional<FinishedEpisode> take_episode();
  std::optional<std::string> take_fault();  // one sentence per invalid episode
  // Observation statistics since the last call, encoded; empty: none.
  std::vector<std::uint8_t> take_statistics();

  const envs::VectorEnvCounters& counters() const { return env_->counters(); }

  // Everything that decides what comes next: environments, noise, open segments, sequence numbers.
  // Call when take_chunk gives no closed chunk. After load, with the same parameters, the next
  // steps are bitwise the same; the incarnation stays this object's own. kCorrupt leaves the worker
  // as new.
  std::vector<std::uint8_t> save() const;
  Result<void> load(std::span<const std::uint8_t> bytes);

 private:
  EnvironmentWorker(const WorkerOptions& options, std::unique_ptr<envs::VectorEnv> env);
  void record(std::int64_t environment, const envs::StepResult& result, Time now);

  WorkerOptions options_;
  std::unique_ptr<envs::VectorEnv> env_;
  replay::Signature signature_;
  models::GaussianNoise noise_;
  models::ParameterSetPtr parameters_;
  std::optional<models::DensePolicy> policy_;
  std::vector<SegmentBuilder> builders_;
  models::RunningStatistics statistics_;
  std::vector<float> observations_, next_observations_, actions_;
  std::deque<FinishedEpisode> episodes_;
  std::deque<std::string> faults_;
  std::uint64_t sequence_ = 0;
};

}  // namespace troupe::actors
