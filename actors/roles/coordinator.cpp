// Implements the coordinator's actor: messages in, RunState's actions out.
#include "actors/roles/coordinator.hpp"

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <nlohmann/json.hpp>
#include <numeric>

#include "actors/roles/node_host.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/system.hpp"

namespace troupe::actors {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr std::chrono::milliseconds kBeat{50};
constexpr const char* kName = "coordinator";

struct State {
  std::shared_ptr<CoordinatorSetup> setup;
  std::optional<RunState> run;
  std::unique_ptr<NodeHost> host;
  std::map<std::string, NodeActor> nodes;                  // joined
  std::map<std::string, std::uint32_t> first_incarnation;  // of this session
  std::map<std::string, std::filesystem::path> checkpoint_directories;
  std::map<std::string, Clock::time_point> forwarded;  // last report passed to the hub
  std::map<std::string, std::string> shown;            // node states told to the hub
  Peers peers;
  bool over = false;
  static inline const char* name = kName;
};

using Self = CoordinatorActor::stateful_pointer<State>;

template <class T>
void to_node(Self self, const std::string& node, T message) {
  const auto found = self->state.nodes.find(node);
  if (found != self->state.nodes.end()) self->send(found->second, std::move(message));
}

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

void broadcast_peers(Self self) {
  for (const auto& [name, node] : self->state.nodes) self->send(node, self->state.peers);
}

Assignment assignment_for(Self self, const Hello& hello) {
  State& state = self->state;
  const CoordinatorSetup& setup = *state.setup;
  Assignment assignment{.role = {},
                        .index = 0,
                        .incarnation = hello.incarnation,
                        .epoch = hello.incarnation,
                        .config = setup.config,
                        .run_directory = setup.run_directory.string(),
                        .socket_directory = setup.socket_directory.string(),
                        .restore_directory = {}};
  for (const NodePlan& plan : plan_topology(setup.options))
    if (plan.name == hello.node) {
      assignment.role = plan.role;
      assignment.index = plan.index;
    }
  // Learners and shards go back to the newest checkpoint whenever they start; an environment actor
  // only with the whole run: one that died goes on with fresh episodes.
  const bool resumes = hello.incarnation == state.first_incarnation[hello.node];
  if (setup.store->newest() && assignment.role != "evaluator" &&
      (assignment.role != "environment" || resumes))
    assignment.restore_directory = setup.store->newest()->directory.string();
  return assignment;
}

caf::result<Assignment> on_hello(Self self, const Hello& hello, const caf::strong_actor_ptr& peer) {
  State& state = self->state;
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
  return assignment_for(self, hello);
}

void place(std::vector<std::string>& slots, std::size_t first,
           const std::vector<std::string>& endpoints) {
  for (std::size_t i = 0; i < endpoints.size() && first + i < slots.size(); ++i)
    slots[first + i] = endpoints[i];
}

void on_ready(Self self, const RoleReady& ready) {
  State& state = self->state;
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
  place(state.peers.shard_endpoints, ready.first_shard, ready.data_endpoints);
  place(state.peers.sample_endpoints, ready.first_shard, ready.sample_endpoints);
  if (!ready.parameter_endpoint.empty()) state.peers.parameter_endpoint = ready.parameter_endpoint;
  state.run->role_ready(ready.node, ready.incarnation, ready.first_shard, inserted, version,
                        Clock::now());
  broadcast_peers(self);
}

// What a node served is gone with it.
void withdraw(Self self, const std::string& node) {
  State& state = self->state;
  state.nodes.erase(node);
  for (const NodePlan& plan : plan_topology(state.setup->options)) {
    if (plan.name != node) continue;
    if (plan.role == "shard") {
      state.peers.shard_endpoints[plan.index].clear();
      state.peers.sample_endpoints[plan.index].clear();
    } else if (plan.role == "learner") {
      state.peers.parameter_endpoint.clear();
      if (state.setup->options.replay.placement == "learner")
        for (std::string& endpoint : state.peers.shard_endpoints) endpoint.clear();
    } else {
      return;
    }
    broadcast_peers(self);
  }
}

void on_report(Self self, const Report& report) {
  State& state = self->state;
  try {
    const Json json = Json::parse(report.json);
    const Json& counters = json.at("counters");
    const Json& gauges = json.at("gauges");
    for (std::uint32_t shard = 0; shard < state.run->shards().size(); ++shard) {
      const std::string prefix = "shard" + std::to_string(shard) + "/";
      if (!counters.contains(prefix + "inserted_steps")) continue;
      state.run->shard_reported(shard,
                                {counters.at(prefix + "inserted_steps").get<std::uint64_t>(),
                                 gauges.at(prefix + "held_steps").get<std::uint64_t>(),
                                 counters.at(prefix + "removed_steps").get<std::uint64_t>(),
                                 counters.at(prefix + "prefilled_steps").get<std::uint64_t>()});
    }
    if (counters.contains("learner_updates"))
      state.run->learner_reported(counters.at("learner_updates").get<std::uint64_t>());
  } catch (const Json::exception& error) {
    log_warning(kName, report.node + " sent an unreadable report: " + error.what());
    return;
  }
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
  State& state = self->state;
  state.setup->store->add_part(part.checkpoint, part.files);
  try {
    const Json json = Json::parse(part.state_json.empty() ? "{}" : part.state_json);
    for (const Json& shard : json.value("ledgers", Json::array()))
      state.run->shard_cut(
          part.checkpoint, shard.at("shard").get<std::uint32_t>(),
          {shard.at("inserted").get<std::uint64_t>(), shard.at("held").get<std::uint64_t>(),
           shard.at("removed").get<std::uint64_t>(), shard.at("prefilled").get<std::uint64_t>()});
    if (json.contains("version"))
      state.run->learner_cut(part.checkpoint, json.at("version").get<std::uint64_t>());
  } catch (const Json::exception& error) {
    log_warning(kName, part.node + " sent an unreadable checkpoint state: " + error.what());
  }
  state.run->part_written(part.node, part.checkpoint, part.error);
}

// One overload per action.
struct Execute {
  Self self;

  void operator()(const StartNode& action) const {
    State& state = self->state;
    state.first_incarnation.emplace(action.node, action.incarnation);
    if (auto started = state.host->start(action.node, action.incarnation); !started)
      state.run->node_ended(action.node, action.incarnation, started.error().message, false,
                            Clock::now());
  }
  void operator()(const KillNode& action) const { self->state.host->kill(action.node); }
  void operator()(const ShutdownNode& action) const {
    if (self->state.nodes.count(action.node) == 0) return self->state.host->kill(action.node);
    to_node(self, action.node, Shutdown{action.reason});
  }
  void operator()(const PingNode& action) const { to_node(self, action.node, Ping{action.number}); }
  void operator()(const PauseNode& action) const { to_node(self, action.node, Pause{true}); }
  void operator()(const BeginCheckpoint& action) const {
    State& state = self->state;
    const auto directory = state.setup->store->begin(action.id, action.actor_steps);
    if (!directory) {
      const std::string first = action.participants.empty() ? kName : action.participants.front();
      return state.run->part_written(first, action.id, directory.error().message);
    }
    for (const std::string& node : action.participants)
      to_node(self, node, CheckpointRequest{action.id, directory->string()});
  }
  void operator()(const CommitCheckpoint& action) const {
    State& state = self->state;
    const auto now = Clock::now();
    state.setup->store->set_actor_steps(action.id, state.run->saved().actor_steps());
    const auto info = state.setup->store->commit(action.id, state.run->saved().version,
                                                 counters_json(*state.run, now));
    if (info) log_info(kName, "checkpoint " + info->directory.filename().string() + " stands");
    state.run->checkpoint_committed(action.id, info ? "" : info.error().message, now);
  }
  void operator()(const AbandonCheckpoint& action) const {
    self->state.setup->store->abandon(action.id);
  }
  void operator()(const BeginEvaluation& action) const {
    to_node(self, action.node, EvaluateRequest{action.id, action.actor_steps, action.version});
  }
  void operator()(const LimitSteps& action) const {
    for (const NodePlan& plan : plan_topology(self->state.setup->options))
      if (plan.role == "learner" || plan.role == "shard")
        to_node(self, plan.name, StepLimits{action.inserted});
  }
  void operator()(const Tell& action) const { tell(self, action); }
  void operator()(const EndRun& action) const {
    State& state = self->state;
    state.over = true;
    state.setup->on_over(action.exit_code, action.text);
    self->quit();
  }
};

void show_nodes(Self self) {
  State& state = self->state;
  for (const NodePlan& plan : plan_topology(state.setup->options)) {
    const std::string now = state.run->state_of(plan.name);
    std::string& shown = state.shown[plan.name];
    if (shown == now) continue;
    shown = now;
    self->send(state.setup->hub,
               NodeState{plan.name, plan.role, now, state.host->pid_of(plan.name), now == "ended"});
  }
}

void settle(Self self) {
  State& state = self->state;
  // An action may cause others at once.
  for (auto actions = state.run->take_actions(); !actions.empty();
       actions = state.run->take_actions())
    for (const Action& action : actions) std::visit(Execute{self}, action);
  if (!state.over) show_nodes(self);
}

void beat(Self self) {
  State& state = self->state;
  if (state.over) return;
  const auto now = Clock::now();
  if (!state.run)
    state.run.emplace(state.setup->options, plan_topology(state.setup->options),
                      state.setup->counters, now);
  for (const NodeHost::Ended& ended : state.host->take_ended()) {
    withdraw(self, ended.node);
    state.run->node_ended(ended.node, ended.incarnation, ended.reason, ended.permanent, now);
  }
  state.run->tick(now);
  settle(self);
  if (!state.over) self->delayed_send(self, kBeat, beat_atom_v);
}

CoordinatorActor::behavior_type coordinator_behavior(
    Self self, const std::shared_ptr<CoordinatorSetup>& setup) {
  State& state = self->state;
  state.setup = setup;
  state.host = make_node_host(self->system(), *setup, self);
  state.peers.shard_endpoints.resize(static_cast<std::size_t>(setup->options.replay.shards));
  state.peers.sample_endpoints.resize(state.peers.shard_endpoints.size());
  catch_exceptions(self, kName);
  // The end of the process or actor behind it says so too; this only notices a lost connection.
  self->set_down_handler([](const caf::down_msg&) {});
  const auto then = [self](auto handle) {
    return [self, handle](const auto& message) {
      if (!self->state.run || self->state.over) return;
      handle(self, message);
      settle(self);
    };
  };
  return {
      [self](const Hello& hello, const caf::strong_actor_ptr& peer) {
        return on_hello(self, hello, peer);
      },
      [=](const RoleReady& ready) { then(on_ready)(ready); },
      [=](const Report& report) { then(on_report)(report); },
      [self](const Pong& pong) {
        if (!self->state.run) return;
        self->state.run->pong(pong.node, pong.incarnation, pong.number, pong.busy_ms,
                              pong.busy_with, Clock::now());
        settle(self);
      },
      [=](const PartWritten& part) { then(on_part)(part); },
      [=](const EvaluationDone& done) { then(on_evaluation)(done); },
      [self](const EpisodeDone& episode) { self->send(self->state.setup->hub, episode); },
      [self](const Event& event) {
        tell(self, Tell{event.node, event.level, event.kind, event.text});
      },
      [self](const RoleEnded& ended) { self->state.host->note_end(ended); },
      [self](const NormaliserDelta& delta) {
        for (const auto& [name, node] : self->state.nodes)
          if (name.starts_with("learner")) self->send(node, delta);
      },
      [self](const StopRequest& request) {
        if (!self->state.run || self->state.over) return;
        self->state.run->stop(request.reason, request.interrupted, request.hurry, Clock::now());
        settle(self);
      },
      [self](beat_atom) { beat(self); },
  };
}

}  // namespace

CoordinatorActor spawn_coordinator(caf::actor_system& system,
                                   std::shared_ptr<CoordinatorSetup> setup) {
  return system.spawn(coordinator_behavior, std::move(setup));
}

}  // namespace troupe::actors
