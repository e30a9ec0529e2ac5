// The learner actor: takes batches, updates, publishes. One learner hosts the replay shards too by
// default, so that batches need no transport; several take their parts of each batch from shards
// elsewhere, or batches of their own where their updates go to parameter servers, and only the one
// that leads publishes and counts. A detached actor: one update per message to itself.
#include "actors/roles/learner_role.hpp"

#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "actors/config/checks.hpp"
#include "actors/roles/learner_setup.hpp"
#include "replay/gather.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWaitForBatch{5};
constexpr int kMostJoins = 20;  // groups in a row that came to nothing before it gives up

}  // namespace

Result<void> LearnerRole::start() {
  return make_learner()
      .and_then([this] { return seat_ ? Result<void>{} : open_source(); })
      .and_then([this] { return open_parameters(); });
}

void LearnerRole::peers(const Peers& peers) {
  endpoints_ = peers.sample_endpoints;
  if (source_) source_->set_endpoints(endpoints_);
  if (!seat_) return;
  const std::uint32_t lead = seat_->lead();
  seat_->peers(peers);
  if (seat_->lead() != lead) published_.reset();
  tell_lead();
}

void LearnerRole::statistics(const NormaliserDelta& delta) {
  if (auto merged = learner_->merge_observations(delta.bytes); !merged)
    warn("statistics", merged.error().message);
}

Result<void> LearnerRole::work() {
  parameters_->serve(milliseconds{0});
  if (seat_ && seat_->has_news()) return change_group();
  if (seat_ && !seat_->stands()) {
    seat_->ask_again();
    return idle("group");
  }
  if (unsettled_) return settle();
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
  if (updated && unsettled_) updated = settle();
  report();
  return updated;
}

void LearnerRole::checkpoint(const CheckpointRequest& request) {
  nlohmann::json state = {{"version", learner_->version()}};
  auto files = learner_->snapshot();
  if (!files) return parts_written(request.checkpoint, tl::unexpected(files.error()), state.dump());
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

void LearnerRole::stop() {
  if (host_) host_->stop();
  source_.reset();
}

Result<void> LearnerRole::idle(const char* reason) {
  blocked_.set(reason);
  report();
  std::this_thread::sleep_for(kWaitForBatch);
  return {};
}

// What was drawn for the old group is dropped: its learners have other parts of the next batch.
void LearnerRole::close_source() {
  if (source_) limiter_state_ = source_->save_limiter();
  batch_ = nullptr;
  source_.reset();
}

Result<void> LearnerRole::change_group() {
  close_source();
  count_updates();
  unsettled_ = false;
  board().enter("joining the other learners, at update", learner_->version());
  auto joined = seat_->join();
  board().leave();
  if (!joined && ++failed_joins_ >= kMostJoins) return joined;
  if (!joined) return {};
  if (auto opened = open_source(); !opened) return opened;
  tell_lead();
  if (!leads() || !led_at_) led_at_ = learner_->version();
  published_.reset();
  unsettled_ = true;
  return settle();
}

// An update counts once it is settled: at once where learners apply all of them together, else
// when the parameter servers have answered.
Result<void> LearnerRole::settle() {
  board().enter("sending update", learner_->version());
  const auto settled = learner_->settle();
  board().leave();
  if (!settled && ++failed_joins_ >= kMostJoins) return tl::unexpected(settled.error());
  if (!settled) return group_over(settled.error());
  if (!*settled) return idle("parameter_server");
  failed_joins_ = 0;
  unsettled_ = false;
  blocked_.set("");
  publish_when_due();
  return {};
}

void LearnerRole::publish_when_due() {
  const auto every = static_cast<std::uint64_t>(context().options.learners.learner.publish_every);
  if (leads() && published_ != learner_->version() / every) publish();
}

void LearnerRole::publish() {
  const auto every = static_cast<std::uint64_t>(context().options.learners.learner.publish_every);
  if (is_asynchronous(context().options)) learner_->set_epoch(seat_->lead());
  parameters_->publish(learner_->parameters());
  published_ = learner_->version() / every;
}

// To its source: whether it gives the shards leave.
void LearnerRole::tell_lead() {
  if (source_ && seat_) source_->set_lead(seat_->leads_run() ? seat_->lead() : 0);
}

// An error of a learner that trains alone is its own.
Result<void> LearnerRole::group_over(const Error& error) {
  if (!seat_) return tl::unexpected(error);
  close_source();
  unsettled_ = false;
  seat_->over(error.message);
  return {};
}

// The coordinator hears of it in the next report; until then nothing goes beyond.
bool LearnerRole::has_finished() const {
  const auto most = static_cast<std::uint64_t>(most_updates(context().options));
  return most > 0 && learner_->version() >= most;
}

Result<void> LearnerRole::make_learner() {
  auto setup = set_up_learner(context());
  if (!setup) return tl::unexpected(setup.error());
  spec_ = std::move(setup->spec);
  learner_ = std::move(setup->learner);
  if (learns_in_groups(context().options))
    seat_.emplace(context(), *learner_, spec_);
  else
    led_at_ = learner_->version();
  return {};
}

Result<void> LearnerRole::open_source() {
  const RunOptions& options = context().options;
  const LearnerSeat* seat = seat_ ? &*seat_ : nullptr;
  const auto source = source_options(context(), *learner_, seat, limiter_state_);
  if (!source) return tl::unexpected(source.error());
  if (!shards_apart(options)) {
    auto host =
        ShardHost::open(context(), 0, static_cast<std::uint32_t>(options.replay.shards), false);
    if (!host) return tl::unexpected(host.error());
    host_ = std::move(*host);
    host_->serve(context());
    source_ = make_local_source(host_->tables(), *source);
    return {};
  }
  source_ = make_remote_source(replay::batch_columns_of(replay::signature_of(spec_)),
                               sampler_name(context(), seat), *source);
  source_->set_endpoints(endpoints_);
  return {};
}

Result<void> LearnerRole::open_parameters() {
  auto server = ParameterServer::open(context().channel_endpoint("parameters"));
  if (!server) return tl::unexpected(server.error());
  parameters_ = std::move(*server);
  if (leads()) publish();
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

Result<void> LearnerRole::update(const replay::Batch& batch) {
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
  unsettled_ = true;
  return {};
}

RoleActor spawn_learner_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<LearnerRole>(system, std::move(context));
}

}  // namespace troupe::actors
