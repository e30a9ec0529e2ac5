// The learner actor: takes batches, updates, publishes. By default it hosts the replay shards too,
// so that batches need no transport. A detached actor: one update per message to itself.
#include <dlfcn.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "actors/config/checks.hpp"
#include "actors/roles/batch_source.hpp"
#include "actors/roles/parameter_feed.hpp"
#include "actors/roles/role_support.hpp"
#include "actors/roles/shard_host.hpp"
#include "actors/roles/table_setup.hpp"
#include "envs/registry.hpp"
#include "envs/spec/random.hpp"
#include "learners/loader.hpp"
#include "replay/gather.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWaitForBatch{5};
constexpr int kMostNotFinite = 100;  // updates in a row before the role gives up
constexpr const char* kLimiterFile = "limiter.json";

class LearnerRole final : public RoleBase {
 public:
  using RoleBase::RoleBase;

  Result<void> start() override {
    return make_learner().and_then([this] { return open_source(); }).and_then([this] {
      return open_parameters();
    });
  }

  void peers(const Peers& peers) override { source_->set_endpoints(peers.sample_endpoints); }

  void limit(const StepLimits& limits) override {
    if (host_) host_->limit(limits);
  }

  void statistics(const NormaliserDelta& delta) override {
    if (auto merged = learner_->merge_observations(delta.bytes); !merged)
      warn("statistics", merged.error().message);
  }

  Result<void> work() override {
    parameters_->serve(milliseconds{0});
    if (has_finished()) {
      blocked_.set("stop");
      report();
      std::this_thread::sleep_for(kWaitForBatch);
      return {};
    }
    blocked_.set("sample");
    replay::Batch* batch = source_->next(kWaitForBatch);
    if (batch == nullptr) {
      report();
      return {};
    }
    blocked_.set("");
    auto updated = update(*batch);
    source_->release(batch);
    report();
    return updated;
  }

  void checkpoint(const CheckpointRequest& request) override {
    nlohmann::json state = {{"version", learner_->version()}};
    auto files = learner_->snapshot();
    if (!files)
      return parts_written(request.checkpoint, tl::unexpected(files.error()), state.dump());
    const std::string limiter = source_->save_limiter();
    files->push_back({kLimiterFile, {limiter.begin(), limiter.end()}});
    std::vector<replay::TableSnapshot> cuts;
    if (host_) cuts = host_->cut();
    state["ledgers"] = ShardHost::ledgers(cuts);
    if (!context().options.checkpoint.replay) cuts.clear();
    write_parts_later(request, std::move(*files), state.dump(),
                      [cuts = std::move(cuts), directory = request.directory] {
                        return ShardHost::write_cuts(cuts, directory);
                      });
  }

  void stop() override {
    if (host_) host_->stop();
    source_.reset();
  }

 private:
  // The coordinator hears of it in the next report; until then nothing goes beyond.
  bool has_finished() const {
    const auto most = static_cast<std::uint64_t>(most_updates(context().options));
    return most > 0 && learner_->version() >= most;
  }

  Result<void> make_learner() {
    const RunOptions& options = context().options;
    auto env =
        envs::make_env(options.environment.name, {.time_limit = options.environment.time_limit});
    if (!env) return tl::unexpected(env.error());
    spec_ = (*env)->spec();
    const auto factory = learners::load_learning_library();
    if (!factory) return tl::unexpected(factory.error());
    auto learner =
        (*factory)(options.job, options.learners.learner,
                   {.spec = spec_,
                    .seed = stream_seed(static_cast<std::uint64_t>(options.seed), "learner"),
                    .epoch = context().assignment.epoch,
                    .deterministic = options.deterministic,
                    .pictures = {}});
    if (!learner) return tl::unexpected(learner.error());
    learner_ = std::move(*learner);
    if (context().assignment.restore_directory.empty()) return {};
    auto loaded = learner_->load(context().assignment.restore_directory);
    first_version_ = learner_->version();
    return loaded;
  }

  Result<void> open_source() {
    const RunOptions& options = context().options;
    SourceOptions source{
        .items = learner_->batch_size(),
        .ahead = options.learners.learner.prefetch,
        .limiter = GlobalLimiter(global_limiter_options(options)),
        .random = Random(stream_seed(static_cast<std::uint64_t>(options.seed), "shares",
                                     context().assignment.epoch)),
        .importance_exponent = prioritised() ? options.replay.importance_exponent : 0,
        .weight_scale = weight_scale(options)};
    if (auto restored = restore_limiter(source.limiter); !restored) return restored;
    if (options.replay.placement == "learner") {
      auto host =
          ShardHost::open(context(), 0, static_cast<std::uint32_t>(options.replay.shards), false);
      if (!host) return tl::unexpected(host.error());
      host_ = std::move(*host);
      for (const std::string& note : host_->notes()) warn("restore", note);
      for (const std::string& note : host_->prefilled())
        caf::anon_send(context().parent, Event{context().node, "info", "prefill", note});
      host_->serve();
      source_ = make_local_source(host_->tables(), source);
      return {};
    }
    source_ = make_remote_source(replay::batch_columns_of(replay::signature_of(spec_)),
                                 context().peer_name(), source);
    return {};
  }

  bool prioritised() const { return context().options.replay.selector == "prioritised"; }

  // Of a learner that goes back to a checkpoint, so that it makes up for the updates it lost. An
  // older checkpoint has no such file: then each update took one batch.
  Result<void> restore_limiter(GlobalLimiter& limiter) const {
    const std::string& from = context().assignment.restore_directory;
    if (from.empty()) return {};
    const auto bytes = read_file(std::filesystem::path(from) / kLimiterFile);
    if (bytes) return limiter.load(std::string(bytes->begin(), bytes->end()));
    if (bytes.error().code != ErrorCode::kNotFound) return tl::unexpected(bytes.error());
    limiter.begin_at(learner_->version() * static_cast<std::uint64_t>(learner_->batch_size()));
    return {};
  }

  Result<void> open_parameters() {
    auto server = ParameterServer::open(context().channel_endpoint("parameters"));
    if (!server) return tl::unexpected(server.error());
    parameters_ = std::move(*server);
    parameters_->publish(learner_->parameters());
    RoleReady message = host_ ? host_->ready_message() : RoleReady{};
    nlohmann::json state = message.state_json.empty() ? nlohmann::json::object()
                                                      : nlohmann::json::parse(message.state_json);
    state["version"] = learner_->version();
    message.state_json = state.dump();
    message.parameter_endpoint = parameters_->endpoint();
    ready(std::move(message));
    return {};
  }

  Result<void> update(const replay::Batch& batch) {
    board().enter("update", learner_->version());
    auto updated = learner_->update(batch);
    board().leave();
    if (!updated) {
      if (updated.error().code != ErrorCode::kNotFinite) return tl::unexpected(updated.error());
      ++not_finite_;
      if (++not_finite_in_a_row_ >= kMostNotFinite)
        return fail(ErrorCode::kNotFinite,
                    std::to_string(kMostNotFinite) +
                        " updates in a row were not finite: " + updated.error().message);
      if (not_finite_in_a_row_ == 1) warn("not_finite_update", updated.error().message);
      return {};
    }
    not_finite_in_a_row_ = 0;
    if (prioritised() && !updated->priorities.empty())
      source_->update_priorities(batch.keys, updated->priorities);
    for (auto& [name, value] : updated->metrics) metrics_[name] = value;
    if (!updated->metrics.empty() && !batch.versions.empty()) {
      const double mean = std::accumulate(batch.versions.begin(), batch.versions.end(), 0.0) /
                          static_cast<double>(batch.versions.size());
      metrics_["sample_age"] = static_cast<double>(updated->version) - mean;
    }
    const auto every = static_cast<std::uint64_t>(context().options.learners.learner.publish_every);
    if (updated->version % every == 0) parameters_->publish(learner_->parameters());
    return {};
  }

  void report() {
    if (!report_due()) return;
    RoleBoard::Snapshot snapshot;
    snapshot.counters["learner_updates"] = static_cast<double>(learner_->version());
    snapshot.counters["not_finite_updates"] = static_cast<double>(not_finite_);
    // The run's clock where nobody steps environments; the hub adds restored updates itself.
    if (is_offline(context().options))
      snapshot.counters["actor_steps"] = static_cast<double>(learner_->version() - first_version_);
    blocked_.add_to(snapshot.counters);
    snapshot.gauges = metrics_;
    if (host_) host_->report(snapshot.counters, snapshot.gauges);
    const SourceFigures figures = source_->figures();
    snapshot.gauges["limiter_cursor"] = figures.cursor;
    snapshot.gauges["samples_per_insert"] = figures.samples_per_insert;
    if (prioritised()) {
      snapshot.counters["priorities_sent"] = static_cast<double>(figures.priorities);
      snapshot.counters["priorities_lost"] = static_cast<double>(figures.priorities_lost);
    }
    if (!blocked_.reason().empty()) snapshot.waiting_on = source_->waiting_on();
    board().publish(std::move(snapshot));
    // Whoever is idle at the end evaluates the newest parameters, not those of the last
    // publication.
    if (!blocked_.reason().empty() && parameters_->newest()->version != learner_->version())
      parameters_->publish(learner_->parameters());
  }

  EnvSpec spec_;
  std::unique_ptr<learners::Learner> learner_;
  std::uint64_t first_version_ = 0;  // that this role began with
  std::unique_ptr<ShardHost> host_;
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<ParameterServer> parameters_;
  BlockedTime blocked_;
  std::map<std::string, double> metrics_;
  std::uint64_t not_finite_ = 0;
  int not_finite_in_a_row_ = 0;
};

}  // namespace

RoleActor spawn_learner_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<LearnerRole>(system, std::move(context));
}

}  // namespace troupe::actors
