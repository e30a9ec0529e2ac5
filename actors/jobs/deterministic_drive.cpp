// The loop around the fixed schedule: telemetry, evaluations, checkpoints and the end of the run.
#include <caf/scoped_actor.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <numeric>

#include "actors/jobs/deterministic.hpp"
#include "actors/jobs/drive.hpp"
#include "actors/roles/role_board.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/signals.hpp"
#include "actors/runtime/system.hpp"

namespace troupe::actors {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kNode = "deterministic";

class Driver {
 public:
  Driver(Prepared& prepared, DeterministicRun& run, HubActor hub)
      : prepared_(prepared),
        options_(prepared.directory.config().options),
        run_(run),
        hub_(std::move(hub)),
        next_evaluation_(prepared.counters.next_evaluation) {
    if (next_evaluation_ == 0)
      next_evaluation_ = static_cast<std::uint64_t>(options_.evaluation.every);
  }

  // Until a stop condition or a signal; the reason, or why it failed.
  Result<std::string> loop(const std::atomic<bool>& interrupted) {
    while (true) {
      if (interrupted) return finish("a signal");
      if (const std::string reason = stop_reason(); !reason.empty()) {
        if (auto evaluated = evaluate(); !evaluated) return tl::unexpected(evaluated.error());
        return finish(reason);
      }
      if (auto done = run_.round(); !done) return tl::unexpected(done.error());
      if (options_.evaluation.every > 0 && run_.actor_steps() >= next_evaluation_) {
        const auto every = static_cast<std::uint64_t>(options_.evaluation.every);
        next_evaluation_ = (run_.actor_steps() / every + 1) * every;
        if (auto evaluated = evaluate(); !evaluated) return tl::unexpected(evaluated.error());
      }
      report();
      const auto now = Clock::now();
      if (options_.checkpoint.every.count() > 0 && now - saved_ >= options_.checkpoint.every)
        if (auto saved = save(); !saved)
          log_warning(kNode, "checkpoint not written: " + saved.error().message);
    }
  }

 private:
  std::string stop_reason() const {
    const StopOptions& stop = options_.stop;
    if (stop.actor_steps > 0 && run_.actor_steps() >= static_cast<std::uint64_t>(stop.actor_steps))
      return "stop.actor_steps reached";
    if (stop.updates > 0 && run_.version() >= static_cast<std::uint64_t>(stop.updates))
      return "stop.updates reached";
    if (stop.mean_return && mean_return_ && *mean_return_ >= *stop.mean_return)
      return "stop.return reached";
    if (stop.wall_time.count() > 0 &&
        wall_ms() >= static_cast<std::uint64_t>(stop.wall_time.count()))
      return "stop.wall_time reached";
    return {};
  }

  std::uint64_t wall_ms() const {
    const auto here =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_);
    return prepared_.counters.wall_ms + static_cast<std::uint64_t>(here.count());
  }

  Result<void> evaluate() {
    if (evaluated_version_ == run_.version()) return {};
    evaluated_version_ = run_.version();
    const auto result = run_.evaluate();
    if (!result) return tl::unexpected(result.error());
    mean_return_ = std::accumulate(result->returns.begin(), result->returns.end(), 0.0) /
                   static_cast<double>(result->returns.size());
    caf::anon_send(
        hub_, EvaluationDone{
                  kNode,
                  0,
                  run_.actor_steps(),
                  run_.version(),
                  nlohmann::json{{"returns", result->returns}, {"lengths", result->lengths}}.dump(),
                  {}});
    return {};
  }

  void report(bool last = false) {
    drain_episodes();
    const auto now = Clock::now();
    if (!last && now - reported_ < options_.telemetry.every) return;
    reported_ = now;
    RoleBoard::Snapshot snapshot;
    // The hub adds restored steps itself.
    snapshot.counters["actor_steps"] = static_cast<double>(run_.actor_steps() - first_steps_);
    snapshot.counters["learner_updates"] = static_cast<double>(run_.version());
    snapshot.counters["not_finite_updates"] = static_cast<double>(run_.not_finite());
    for (const auto& table : run_.tables()) {
      const replay::TableStatistics statistics = table->statistics();
      snapshot.counters["inserted"] += static_cast<double>(statistics.inserted_items);
      snapshot.counters["sampled"] += static_cast<double>(statistics.sampled_items);
      snapshot.gauges["samples_per_insert"] = statistics.samples_per_insert;
    }
    for (const auto& [name, value] : run_.metrics()) snapshot.gauges[name] = value;
    caf::anon_send(hub_, Report{kNode, 1, to_json(snapshot)});
  }

  void drain_episodes() {
    for (const auto& worker : run_.workers()) {
      while (const auto fault = worker->take_fault()) {
        log_warning(kNode, *fault);
        caf::anon_send(hub_, Event{kNode, "warning", "invalid_episode", *fault});
      }
      while (const auto episode = worker->take_episode())
        caf::anon_send(hub_,
                       EpisodeDone{kNode, static_cast<std::uint64_t>(episode->environment),
                                   std::bit_cast<std::uint64_t>(episode->episode_return),
                                   static_cast<std::uint64_t>(episode->length), episode->version});
    }
  }

  Result<std::string> finish(const std::string& reason) {
    report(true);
    if (auto saved = save(); !saved) return tl::unexpected(saved.error());
    return reason;
  }

  Result<void> save() {
    saved_ = Clock::now();
    const std::uint64_t id = next_id_++;
    const auto directory = prepared_.store->begin(id, run_.actor_steps());
    if (!directory) return tl::unexpected(directory.error());
    auto parts = run_.save(*directory);
    if (!parts) {
      prepared_.store->abandon(id);
      return tl::unexpected(parts.error());
    }
    prepared_.store->add_part(id, *parts);
    const auto info = prepared_.store->commit(id, run_.version(), state_json());
    if (!info) return tl::unexpected(info.error());
    return {};
  }

  std::string state_json() const {
    std::vector<std::uint64_t> by_shard;
    std::uint64_t inserted = 0, prefilled = 0, held = 0, removed = 0;
    for (const auto& table : run_.tables()) {
      const replay::TableStatistics statistics = table->statistics();
      by_shard.push_back(statistics.inserted_steps);
      inserted += statistics.inserted_steps;
      prefilled += statistics.prefilled_steps;
      held += statistics.held_steps;
      removed += statistics.removed_steps;
    }
    return nlohmann::json{{"lost_with_shard", 0},
                          {"inserted", by_shard},
                          {"wall_ms", wall_ms()},
                          {"next_evaluation", next_evaluation_},
                          {"incarnations", nlohmann::json::object()},
                          {"version", run_.version()},
                          {"ledger",
                           {{"inserted", inserted},
                            {"prefilled", prefilled},
                            {"held", held},
                            {"removed", removed},
                            {"lost_with_shard", 0}}}}
        .dump(2);
  }

  Prepared& prepared_;
  const RunOptions options_;
  DeterministicRun& run_;
  HubActor hub_;
  const std::uint64_t first_steps_ = run_.actor_steps();
  std::uint64_t next_evaluation_;
  const Clock::time_point started_ = Clock::now();
  Clock::time_point reported_{}, saved_ = Clock::now();
  std::uint64_t next_id_ = 1, evaluated_version_ = ~std::uint64_t{0};
  std::optional<double> mean_return_;
};

}  // namespace

RunOutcome drive_deterministic(Prepared& prepared, std::uint64_t run_id) {
  System system({.run = std::to_string(run_id)}, [](caf::actor_system_config& config) {
    config.add_message_types<caf::id_block::troupe>();
  });
  const HubActor hub = spawn_hub(system.get(), prepared.hub);
  std::atomic<bool> interrupted{false};
  auto signals = SignalListener::start([&](int, int) { interrupted = true; });
  const auto& newest = prepared.store->newest();
  auto run = DeterministicRun::make(prepared.directory.config().options,
                                    newest ? newest->directory : std::filesystem::path{});
  Result<std::string> ended = tl::unexpected(Error{});
  if (run) {
    caf::anon_send(hub, NodeState{kNode, "deterministic", "ready", ::getpid(), false});
    caf::anon_send(hub, RunPhase{"running", {}, 0, 0});
    Driver driver(prepared, **run, hub);
    ended = driver.loop(interrupted);
  } else {
    ended = tl::unexpected(run.error());
  }
  const int code = !ended ? 1 : interrupted ? 130 : 0;
  const std::string text = ended ? *ended : ended.error().message;
  return end_telemetry(system.get(), hub, code, text);
}

}  // namespace troupe::actors
