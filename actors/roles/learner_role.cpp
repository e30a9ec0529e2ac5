// The learner actor: takes batches, updates, publishes. One learner hosts the replay shards too by
// default, so that batches need no transport; several take their parts of each batch from shards
// elsewhere, and only the one that leads publishes and counts. A detached actor: one update per
// message to itself.
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "actors/config/checks.hpp"
#include "actors/roles/finite_updates.hpp"
#include "actors/roles/learner_source.hpp"
#include "actors/roles/parameter_feed.hpp"
#include "actors/roles/role_support.hpp"
#include "actors/roles/shard_host.hpp"
#include "envs/registry.hpp"
#include "envs/spec/random.hpp"
#include "learners/loader.hpp"
#include "replay/gather.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWaitForBatch{5};
constexpr int kMostJoins = 20;  // groups in a row that could not be joined before it gives up

class LearnerRole final : public RoleBase {
 public:
  using RoleBase::RoleBase;

  Result<void> start() override {
    return make_learner()
        .and_then([this] { return seat_ ? Result<void>{} : open_source(); })
        .and_then([this] { return open_parameters(); });
  }

  void peers(const Peers& peers) override {
    endpoints_ = peers.sample_endpoints;
    if (source_) source_->set_endpoints(endpoints_);
  }
  void group(const GroupFormed& group) override {
    if (seat_) seat_->told(group);
  }

  void limit(const StepLimits& limits) override {
    if (host_) host_->limit(limits);
  }

  void statistics(const NormaliserDelta& delta) override {
    if (auto merged = learner_->merge_observations(delta.bytes); !merged)
      warn("statistics", merged.error().message);
  }

  Result<void> work() override {
    parameters_->serve(milliseconds{0});
    if (seat_ && seat_->has_news()) return change_group();
    if (seat_ && !seat_->stands()) {
      seat_->ask_again();
      return idle("group");
    }
    if (has_finished()) return idle("stop");
    blocked_.set("sample");
    if (batch_ == nullptr) batch_ = source_->next(kWaitForBatch);
    // Who waits for its part of the batch says so: it is not taken for dead.
    const auto ready = learner_->all_ready(batch_ != nullptr);
    if (!ready) return group_over(ready.error());
    if (!*ready) {
      report();
      return {};
    }
    blocked_.set("");
    auto updated = update(*batch_);
    if (source_) source_->release(std::exchange(batch_, nullptr));
    report();
    return updated;
  }

  void checkpoint(const CheckpointRequest& request) override {
    nlohmann::json state = {{"version", learner_->version()}};
    auto files = learner_->snapshot();
    if (!files)
      return parts_written(request.checkpoint, tl::unexpected(files.error()), state.dump());
    // Between two groups it is that of the last one.
    const std::string limiter = source_ ? source_->save_limiter() : limiter_state_;
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
  Result<void> idle(const char* reason) {
    blocked_.set(reason);
    report();
    std::this_thread::sleep_for(kWaitForBatch);
    return {};
  }

  // What was drawn for the old group is dropped: its learners have other parts of the next batch.
  void close_source() {
    if (source_) limiter_state_ = source_->save_limiter();
    batch_ = nullptr;
    source_.reset();
  }

  Result<void> change_group() {
    close_source();
    board().enter("joining the other learners, at update", learner_->version());
    auto joined = seat_->join();
    board().leave();
    if (!joined && ++failed_joins_ >= kMostJoins) return joined;
    if (!joined) return {};
    failed_joins_ = 0;
    if (auto opened = open_source(); !opened) return opened;
    if (leads()) parameters_->publish(learner_->parameters());
    return {};
  }

  // An error of a learner that trains alone is its own.
  Result<void> group_over(const Error& error) {
    if (!seat_) return tl::unexpected(error);
    close_source();
    seat_->over(error.message);
    return {};
  }

  bool leads() const { return !seat_ || seat_->leads(); }

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
    if (options.learners.count > 1) seat_.emplace(context(), *learner_);
    if (context().assignment.restore_directory.empty()) return {};
    auto loaded = learner_->load(context().assignment.restore_directory);
    first_version_ = learner_->version();
    return loaded;
  }

  Result<void> open_source() {
    const RunOptions& options = context().options;
    const LearnerSeat* seat = seat_ ? &*seat_ : nullptr;
    const auto source = source_options(context(), *learner_, seat, limiter_state_);
    if (!source) return tl::unexpected(source.error());
    if (!shards_apart(options)) {
      auto host =
          ShardHost::open(context(), 0, static_cast<std::uint32_t>(options.replay.shards), false);
      if (!host) return tl::unexpected(host.error());
      host_ = std::move(*host);
      for (const std::string& note : host_->notes()) warn("restore", note);
      for (const std::string& note : host_->prefilled())
        caf::anon_send(context().parent, Event{context().node, "info", "prefill", note});
      host_->serve();
      source_ = make_local_source(host_->tables(), *source);
      return {};
    }
    source_ = make_remote_source(replay::batch_columns_of(replay::signature_of(spec_)),
                                 sampler_name(context(), seat), *source);
    source_->set_endpoints(endpoints_);
    return {};
  }

  Result<void> open_parameters() {
    auto server = ParameterServer::open(context().channel_endpoint("parameters"));
    if (!server) return tl::unexpected(server.error());
    parameters_ = std::move(*server);
    if (leads()) parameters_->publish(learner_->parameters());
    RoleReady message = host_ ? host_->ready_message() : RoleReady{};
    nlohmann::json state = message.state_json.empty() ? nlohmann::json::object()
                                                      : nlohmann::json::parse(message.state_json);
    state["version"] = learner_->version();
    message.state_json = state.dump();
    message.parameter_endpoint = parameters_->endpoint();
    ready(std::move(message));
    if (seat_) seat_->over("");
    return {};
  }

  Result<void> update(const replay::Batch& batch) {
    board().enter("update", learner_->version());
    auto updated = learner_->update(batch);
    board().leave();
    if (!updated) {
      if (updated.error().code != ErrorCode::kNotFinite) return group_over(updated.error());
      const auto first = finite_.failed(updated.error());
      if (!first) return tl::unexpected(first.error());
      if (*first) warn("not_finite_update", updated.error().message);
      return {};
    }
    finite_.good();
    compared_ += updated->compared ? 1 : 0;
    // Each knows the keys of its own part of the batch.
    if (is_prioritised(context().options) && !updated->priorities.empty())
      source_->update_priorities(batch.keys, updated->priorities);
    for (auto& [name, value] : updated->metrics) metrics_[name] = value;
    if (!updated->metrics.empty() && !batch.versions.empty()) {
      const double mean = std::accumulate(batch.versions.begin(), batch.versions.end(), 0.0) /
                          static_cast<double>(batch.versions.size());
      metrics_["sample_age"] = static_cast<double>(updated->version) - mean;
    }
    const auto every = static_cast<std::uint64_t>(context().options.learners.learner.publish_every);
    if (updated->version % every == 0 && leads()) parameters_->publish(learner_->parameters());
    return {};
  }

  void report() {
    if (!report_due()) return;
    RoleBoard::Snapshot snapshot;
    blocked_.add_to(snapshot.counters);
    if (host_) host_->report(snapshot.counters, snapshot.gauges);
    if (leads()) report_updates(snapshot);
    if (source_) report_source(snapshot);
    if (!blocked_.reason().empty()) snapshot.waiting_on = waiting_on();
    board().publish(std::move(snapshot));
    // Whoever is idle at the end evaluates the newest parameters, not those of the last
    // publication.
    if (leads() && !blocked_.reason().empty() &&
        parameters_->newest()->version != learner_->version())
      parameters_->publish(learner_->parameters());
  }

  // Of the whole run.
  void report_updates(RoleBoard::Snapshot& snapshot) {
    snapshot.counters["learner_updates"] = static_cast<double>(learner_->version());
    snapshot.counters["not_finite_updates"] = static_cast<double>(finite_.count());
    // The run's clock where nobody steps environments; the hub adds restored updates itself.
    if (is_offline(context().options))
      snapshot.counters["actor_steps"] = static_cast<double>(learner_->version() - first_version_);
    snapshot.gauges.insert(metrics_.begin(), metrics_.end());
    if (!seat_) return;
    snapshot.gauges["learners_in_step"] = seat_->group().size;
    snapshot.gauges["learner_generation"] = seat_->group().generation;
    snapshot.gauges["states_compared"] = static_cast<double>(compared_);
  }

  void report_source(RoleBoard::Snapshot& snapshot) const {
    const SourceFigures figures = source_->figures();
    if (leads()) {
      snapshot.gauges["limiter_cursor"] = figures.cursor;
      snapshot.gauges["samples_per_insert"] = figures.samples_per_insert;
    }
    if (is_prioritised(context().options)) {
      snapshot.counters["priorities_sent"] = static_cast<double>(figures.priorities);
      snapshot.counters["priorities_lost"] = static_cast<double>(figures.priorities_lost);
    }
  }

  std::string waiting_on() const {
    if (!source_) return "the learners form a group";
    return batch_ != nullptr ? "another learner waits for its part of the batch"
                             : source_->waiting_on();
  }

  EnvSpec spec_;
  std::unique_ptr<learners::Learner> learner_;
  std::optional<LearnerSeat> seat_;     // among several learners
  std::vector<std::string> endpoints_;  // where batches of remote shards come from
  std::uint64_t first_version_ = 0;     // that this role began with
  std::unique_ptr<ShardHost> host_;
  std::unique_ptr<BatchSource> source_;  // null between two groups
  replay::Batch* batch_ = nullptr;       // of the source: the next update's
  std::string limiter_state_;            // of the source before this one
  std::unique_ptr<ParameterServer> parameters_;
  BlockedTime blocked_;
  std::map<std::string, double> metrics_;
  FiniteUpdates finite_;
  int failed_joins_ = 0;
  std::uint64_t compared_ = 0;  // updates after which all states were found equal
};

}  // namespace

RoleActor spawn_learner_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<LearnerRole>(system, std::move(context));
}

}  // namespace troupe::actors
