// Implements what the coordinator does with what nodes send.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "actors/config/checks.hpp"
#include "actors/roles/coordinator_state.hpp"
#include "actors/roles/step_mark.hpp"
#include "actors/roles/update_mark.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/system.hpp"

namespace troupe::actors {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using Self = CoordinatorSelf;

namespace {

constexpr const char* kName = "coordinator";

Assignment assignment_for(Self self, const Hello& hello) {
  CoordinatorState& state = self->state;
  const CoordinatorSetup& setup = *state.setup;
  Assignment assignment{.role = {},
                        .index = 0,
                        .incarnation = hello.incarnation,
                        .epoch = hello.incarnation,
                        .config = setup.config,
                        .run_directory = setup.run_directory.string(),
                        .socket_directory = setup.socket_directory.string(),
                        .restore_directory = {}};
  for (const NodePlan& plan : state.run->plan())
    if (plan.name == hello.node) {
      assignment.role = plan.role;
      assignment.index = plan.index;
    }
  // Learners and shards go back to the newest checkpoint whenever they start; an environment actor
  // only with the whole run: one that died goes on with fresh episodes.
  const bool resumes = hello.incarnation == state.first_incarnation[hello.node];
  if (setup.store->newest() && has_state(assignment.role) && !state.run->begins_empty(hello.node) &&
      (assignment.role != "environment" || resumes))
    assignment.restore_directory = setup.store->newest()->directory.string();
  return assignment;
}

void place(std::vector<std::string>& slots, std::size_t first,
           const std::vector<std::string>& endpoints) {
  for (std::size_t i = 0; i < endpoints.size() && first + i < slots.size(); ++i)
    slots[first + i] = endpoints[i];
}

}  // namespace

void tell(Self self, const Tell& line) {
  const std::string component = line.node.empty() ? kName : line.node;
  if (line.level == "error")
    log_error(component, line.text);
  else if (line.level == "warning")
    log_warning(component, line.text);
  else
    log_info(component, line.text);
  self->send(self->state.setup->hub, Event{component, line.level, line.kind, line.text});
}

void resize_peers(Self self) {
  CoordinatorState& state = self->state;
  state.peers.shard_endpoints.resize(state.run->shards().size());
  state.peers.sample_endpoints.resize(state.run->shards().size());
  state.peers.update_endpoints.resize(
      static_cast<std::size_t>(parameter_servers(state.setup->options)));
}

caf::result<Assignment> on_hello(Self self, const Hello& hello, const caf::strong_actor_ptr& peer) {
  CoordinatorState& state = self->state;
  const auto refuse = [&](const std::string& why) {
    log_warning(kName, "refuses " + hello.node + ": " + why);
    return caf::make_error(caf::sec::runtime_error, why);
  };
  if (hello.protocol != kProtocolVersion)
    return refuse("it speaks protocol " + std::to_string(hello.protocol) + ", this run speaks " +
                  std::to_string(kProtocolVersion));
  if (hello.run_id != state.setup->run_id) return refuse("it belongs to another run");
  if (!state.run->node_joined(hello.node, hello.incarnation, Clock::now()))
    return refuse("incarnation " + std::to_string(hello.incarnation) + " is not expected");
  state.nodes[hello.node] = caf::actor_cast<NodeActor>(peer);
  self->monitor(state.nodes[hello.node]);
  self->send(state.nodes[hello.node], state.peers);
  Assignment assignment = assignment_for(self, hello);
  if (!assignment.restore_directory.empty() && state.run->state_of(hello.node) == "joined")
    state.setup->store->hold(hello.node);
  return assignment;
}

void on_ready(Self self, const RoleReady& ready) {
  CoordinatorState& state = self->state;
  state.setup->store->release(ready.node);
  std::vector<std::uint64_t> inserted;
  std::uint64_t version = 0;
  try {
    const Json json = ready.state_json.empty() ? Json::object() : Json::parse(ready.state_json);
    inserted = json.value("inserted_steps", inserted);
    version = json.value("version", version);
  } catch (const Json::exception& error) {
    log_error(kName, ready.node + " sent an unreadable state: " + error.what());
    return;
  }
  if (!learns_from_pictures(state.setup->options))
    place(state.peers.shard_endpoints, ready.first_shard, ready.data_endpoints);
  else if (!ready.data_endpoints.empty())
    state.picture_endpoints[ready.node] = ready.data_endpoints.front();
  place(state.peers.sample_endpoints, ready.first_shard, ready.sample_endpoints);
  if (!ready.parameter_endpoint.empty())
    state.learner_endpoints[ready.node] = ready.parameter_endpoint;
  for (const NodePlan& plan : state.run->plan()) {
    if (plan.name != ready.node || plan.role != "parameter_server") continue;
    state.peers.update_endpoints[plan.index] = ready.update_endpoint;
    // Versions may fall: what is published from now on is newer all the same.
    if (ready.incarnation != state.first_incarnation[ready.node]) ++state.peers.lead;
  }
  lead(self);
  state.run->role_ready(ready.node, ready.incarnation, ready.first_shard, inserted, version,
                        Clock::now());
  broadcast_peers(self);
}

namespace {

// Reads what the shards of a node that is gone had inserted.
void take_marks(Self self, const std::string& node, std::uint32_t incarnation) {
  CoordinatorState& state = self->state;
  if (!state.run->is_current(node, incarnation)) return;
  for (std::uint32_t shard = 0; shard < state.run->shards().size(); ++shard) {
    const auto path = StepMark::path_of(state.setup->socket_directory, shard, incarnation);
    const std::string holder =
        shards_apart(state.setup->options) ? "shard-" + std::to_string(shard) : "learner-0";
    if (holder != node) continue;
    if (const auto inserted = StepMark::read(path)) state.run->shard_left(shard, *inserted);
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
}

// What a parameter server that is gone had applied.
void take_update_mark(Self self, const NodePlan& plan, std::uint32_t incarnation) {
  CoordinatorState& state = self->state;
  if (!state.run->is_current(plan.name, incarnation)) return;
  const auto path = UpdateMark::path_of(state.setup->socket_directory, plan.index, incarnation);
  if (const auto life = UpdateMark::read(path)) state.run->server_said(plan.index, *life);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

}  // namespace

void withdraw(Self self, const std::string& node, std::uint32_t incarnation) {
  CoordinatorState& state = self->state;
  take_marks(self, node, incarnation);
  state.setup->store->release(node);
  state.nodes.erase(node);
  for (const NodePlan& plan : state.run->plan()) {
    if (plan.name != node) continue;
    if (plan.role == "shard") {
      state.peers.shard_endpoints[plan.index].clear();
      state.peers.sample_endpoints[plan.index].clear();
    } else if (plan.role == "learner") {
      state.learner_endpoints.erase(node);
      state.picture_endpoints.erase(node);
      if (state.groups)
        state.groups
            ->of(static_cast<std::size_t>(group_of_learner(state.setup->options, plan.index)))
            .ended(node, Clock::now());
      lead(self);
      if (!shards_apart(state.setup->options) && !learns_from_pictures(state.setup->options))
        for (std::string& endpoint : state.peers.shard_endpoints) endpoint.clear();
    } else if (plan.role == "parameter_server") {
      take_update_mark(self, plan, incarnation);
      state.peers.update_endpoints[plan.index].clear();
    } else if (plan.role == "data") {
      auto& ended = state.peers.ended_actors;
      ended.resize(std::max<std::size_t>(ended.size(), plan.index + 1));
      ended[plan.index] = std::max(ended[plan.index], incarnation);
    } else {
      return;
    }
    broadcast_peers(self);
  }
}

namespace {

// What the run's decisions need of it; false when it cannot be read.
bool take_report(Self self, const Report& report) {
  CoordinatorState& state = self->state;
  try {
    const Json json = Json::parse(report.json);
    const Json& counters = json.at("counters");
    const Json& gauges = json.at("gauges");
    Condition& condition = state.conditions[report.node];
    condition.waiting_on = json.value("waiting_on", std::string());
    const auto waited = [&](const char* what) {
      return counters.value(std::string(what) + "_blocked_ms", 0.0);
    };
    condition.insert_blocked_ms =
        waited("replay_credit") + waited("lease") + waited("acknowledgement");
    condition.sample_blocked_ms = waited("sample") + waited("pictures");
    if (counters.contains("learner_updates"))
      condition.version = counters.at("learner_updates").get<std::uint64_t>();
    else if (gauges.contains("policy_version"))
      condition.version = static_cast<std::uint64_t>(gauges.at("policy_version").get<double>());
    for (std::uint32_t shard = 0; shard < state.run->shards().size(); ++shard) {
      const std::string prefix = "shard" + std::to_string(shard) + "/";
      if (!counters.contains(prefix + "inserted_steps")) continue;
      state.run->shard_reported(
          shard,
          {counters.at(prefix + "inserted_steps").get<std::uint64_t>(),
           gauges.at(prefix + "held_steps").get<std::uint64_t>(),
           counters.at(prefix + "removed_steps").get<std::uint64_t>(),
           counters.at(prefix + "prefilled_steps").get<std::uint64_t>()},
          static_cast<std::uint64_t>(gauges.value(prefix + "step_limit", 0.0)));
    }
    take_server_report(self, counters, gauges);
    const bool counts = !state.groups || state.groups->leader() == report.node;
    if (counts && counters.contains("learner_updates"))
      state.run->learner_reported(counters.at("learner_updates").get<std::uint64_t>());
    return true;
  } catch (const Json::exception& error) {
    log_warning(kName, report.node + " sent an unreadable report: " + error.what());
    return false;
  }
}

}  // namespace

void on_report(Self self, const Report& report) {
  CoordinatorState& state = self->state;
  // One that was under way when its process was seen to end says less than is known by then; the
  // watchers' counts may still have it.
  if (state.run->is_current(report.node, report.incarnation) && !take_report(self, report)) return;
  // Stop conditions want fresh counts; watchers want telemetry.every.
  Clock::time_point& forwarded = state.forwarded[report.node];
  const auto now = Clock::now();
  if (now - forwarded < state.setup->options.telemetry.every &&
      state.run->phase() == RunState::Phase::kRunning)
    return;
  forwarded = now;
  self->send(state.setup->hub, report);
}

void on_evaluation(Self self, const EvaluationDone& done) {
  double mean = 0;
  std::string error = done.error;
  if (error.empty()) {
    try {
      const auto returns = Json::parse(done.json).at("returns").get<std::vector<double>>();
      mean = std::accumulate(returns.begin(), returns.end(), 0.0) /
             static_cast<double>(returns.size());
    } catch (const Json::exception& exception) {
      error = exception.what();
    }
  }
  if (error.empty()) self->send(self->state.setup->hub, done);
  self->state.run->evaluation_done(done.evaluation, mean, error);
}

void on_part(Self self, const PartWritten& part) {
  CoordinatorState& state = self->state;
  state.setup->store->add_part(part.checkpoint, part.files);
  try {
    const Json json = Json::parse(part.state_json.empty() ? "{}" : part.state_json);
    for (const Json& shard : json.value("ledgers", Json::array()))
      state.run->shard_cut(
          part.checkpoint, shard.at("shard").get<std::uint32_t>(),
          {shard.at("inserted").get<std::uint64_t>(), shard.at("held").get<std::uint64_t>(),
           shard.at("removed").get<std::uint64_t>(), shard.at("prefilled").get<std::uint64_t>()});
    if (json.contains("server"))
      state.run->server_cut(part.checkpoint, json.at("server").at("index").get<std::uint32_t>(),
                            {json.at("server").at("version").get<std::uint64_t>(),
                             json.at("server").at("applied").get<std::uint64_t>()});
    if (json.contains("version"))
      state.run->learner_cut(part.checkpoint, json.at("version").get<std::uint64_t>());
  } catch (const Json::exception& error) {
    log_warning(kName, part.node + " sent an unreadable checkpoint state: " + error.what());
  }
  state.run->part_written(part.node, part.checkpoint, part.error);
}

}  // namespace troupe::actors
