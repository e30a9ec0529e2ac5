// `deterministic: true`: the same parts on one fixed schedule in one thread, so that a seed gives
// the same bits every time, and N steps, a resume and M steps give the bits of N + M. Replicas keep
// a thread each and meet only in collectives of fixed order.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "actors/config/run_options.hpp"
#include "actors/roles/checkpoint_store.hpp"
#include "actors/roles/environment_worker.hpp"
#include "actors/roles/evaluation.hpp"
#include "actors/roles/global_limiter.hpp"
#include "actors/roles/table_setup.hpp"
#include "learners/learner.hpp"
#include "replay/table.hpp"

namespace troupe::actors {

// One round = one control step of every environment, what is due into the tables, and every update
// that the limiter then allows; or one update, without environment actors. Owned by one thread.
class DeterministicRun {
 public:
  // `restore`: a complete checkpoint directory; empty: from nothing.
  static Result<std::unique_ptr<DeterministicRun>> make(const RunOptions& options,
                                                        const std::filesystem::path& restore);

  Result<void> round();
  // Control steps taken, restored ones included; updates where there are no environment actors.
  std::uint64_t actor_steps() const;
  std::uint64_t version() const { return learner_->version(); }
  std::uint64_t state_hash(int replica) const { return learner_->state_hash(replica); }
  Result<EvaluationResult> evaluate() const;
  // Writes all parts; call between rounds.
  Result<std::vector<FilePart>> save(const std::filesystem::path& directory) const;

  const std::vector<std::unique_ptr<EnvironmentWorker>>& workers() const { return workers_; }
  const std::vector<std::unique_ptr<replay::Table>>& tables() const { return tables_; }
  const std::map<std::string, double>& metrics() const { return metrics_; }
  std::uint64_t not_finite() const { return not_finite_; }

 private:
  explicit DeterministicRun(const RunOptions& options)
      : options_(options), limiter_(global_limiter_options(options)) {}
  Result<void> make_parts();
  Result<void> begin();  // a new run
  Result<void> train_offline();
  Result<void> restore(const std::filesystem::path& directory);
  Result<void> publish(models::ParameterSetPtr set);
  Result<void> insert(replay::Table& table, replay::Chunk chunk);
  // Updates while the limiter allows; false: it allowed none.
  Result<bool> update();
  // Tells the limiter what the tables have.
  void look();
  // How a batch is shared among the shards; nullopt: the limiter allows no batch.
  struct Shares {
    std::vector<double> probabilities;  // of a draw to come from each shard
    std::vector<std::size_t> counts;
  };
  std::optional<Shares> shares();
  Result<void> train(const Shares& shares);
  Result<void> restore_limiter(const std::filesystem::path& directory);

  RunOptions options_;
  EnvSpec spec_;
  std::vector<std::unique_ptr<EnvironmentWorker>> workers_;
  std::vector<std::unique_ptr<replay::Table>> tables_;
  std::vector<std::uint64_t> restored_;  // items inserted into each table before this session
  GlobalLimiter limiter_;
  std::unique_ptr<learners::Learner> learner_;
  models::ParameterSetPtr published_;
  replay::Batch batch_;
  Random shares_;  // draws how many items come from each shard
  std::map<std::string, double> metrics_;
  std::uint64_t not_finite_ = 0;
};

}  // namespace troupe::actors
