// Implements the coordinator's actor: messages in, RunState's actions out.
#include "actors/roles/coordinator.hpp"

#include <caf/actor_system.hpp>

#include "actors/roles/coordinator_state.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/system.hpp"

namespace troupe::actors {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBeat{50};
constexpr const char* kName = "coordinator";

using Self = CoordinatorSelf;

template <class T>
void to_node(Self self, const std::string& node, T message) {
  const auto found = self->state.nodes.find(node);
  if (found != self->state.nodes.end()) self->send(found->second, std::move(message));
}

// One overload per action.
struct Execute {
  Self self;

  void operator()(const StartNode& action) const {
    CoordinatorState& state = self->state;
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
  void operator()(const DrainNode& action) const {
    CoordinatorState& state = self->state;
    if (state.nodes.count(action.node) == 0) return state.host->kill(action.node);
    // A learner has nothing to finish once the others go on without it.
    if (state.groups && leave_group(self, action.node))
      to_node(self, action.node, Shutdown{"it is drained"});
    else
      to_node(self, action.node, Drain{"it is drained"});
  }
  void operator()(const PingNode& action) const { to_node(self, action.node, Ping{action.number}); }
  void operator()(const PauseNode& action) const { to_node(self, action.node, Pause{true}); }
  void operator()(const BeginCheckpoint& action) const {
    CoordinatorState& state = self->state;
    const auto directory = state.setup->store->begin(action.id, action.actor_steps);
    if (!directory) {
      const std::string first = action.participants.empty() ? kName : action.participants.front();
      return state.run->part_written(first, action.id, directory.error().message);
    }
    for (const std::string& node : action.participants)
      to_node(self, node, CheckpointRequest{action.id, directory->string()});
  }
  void operator()(const CommitCheckpoint& action) const {
    CoordinatorState& state = self->state;
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
    for (const NodePlan& plan : self->state.run->plan())
      if (plan.role == "learner" || plan.role == "shard")
        to_node(self, plan.name, StepLimits{action.inserted});
  }
  void operator()(const Tell& action) const { tell(self, action); }
  void operator()(const EndRun& action) const {
    CoordinatorState& state = self->state;
    state.over = true;
    state.setup->on_over(action.exit_code, action.text);
    self->quit();
  }
};

void show_nodes(Self self) {
  CoordinatorState& state = self->state;
  for (const NodePlan& plan : state.run->plan()) {
    const std::string now = state.run->state_of(plan.name);
    std::string& shown = state.shown[plan.name];
    if (shown == now) continue;
    shown = now;
    self->send(state.setup->hub,
               NodeState{plan.name, plan.role, now, state.host->pid_of(plan.name), false});
  }
  for (auto shown = state.shown.begin(); shown != state.shown.end();) {
    if (state.run->has(shown->first)) {
      ++shown;
      continue;
    }
    self->send(state.setup->hub, NodeState{shown->first, "", "left", 0, true});
    state.conditions.erase(shown->first);
    shown = state.shown.erase(shown);
  }
}

void show_leaving_shards(Self self) {
  CoordinatorState& state = self->state;
  auto leaving = state.run->leaving_shards(), gone = state.run->gone_shards();
  if (leaving == state.peers.leaving_shards && gone == state.peers.gone_shards) return;
  state.peers.leaving_shards = std::move(leaving);
  state.peers.gone_shards = std::move(gone);
  broadcast_peers(self);
}

void watch_for_standstill(Self self, Clock::time_point now) {
  CoordinatorState& state = self->state;
  StandstillView view{.nodes = {},
                      .stopping = state.run->stopping(),
                      .version = state.run->version(),
                      .actor_steps = state.run->actor_steps(),
                      .restoring = {},
                      .disk_error = state.run->checkpoint_error()};
  if (const auto& newest = state.setup->store->newest())
    view.restoring = newest->directory.filename().string();
  for (const NodePlan& plan : state.run->plan()) {
    const Condition& condition = state.conditions[plan.name];
    view.nodes.push_back({plan.name, plan.role, state.run->state_of(plan.name),
                          condition.waiting_on, condition.busy_ms, condition.busy_with});
  }
  if (const auto text = state.watch->look(view, now))
    tell(self, Tell{"", "warning", "standstill", *text});
}

void beat(Self self) {
  CoordinatorState& state = self->state;
  if (state.over) return;
  const auto now = Clock::now();
  if (!state.run) {
    const RunCounters& counters = state.setup->counters;
    state.run.emplace(state.setup->options, plan_topology(state.setup->options, counters.scaled),
                      counters, now);
    state.watch.emplace(state.setup->options.supervision.standstill_after, now);
    begin_groups(self);
    resize_peers(self);
    const ActorOptions& actors = state.setup->options.actors;
    if (actors.scaling == "auto")
      state.scaling.emplace(ActorScalingOptions{.min = actors.min, .max = actors.max}, now);
  }
  for (const NodeHost::Ended& ended : state.host->take_ended()) {
    withdraw(self, ended.node, ended.incarnation);
    state.run->node_ended(ended.node, ended.incarnation, ended.reason, ended.permanent, now);
  }
  state.run->tick(now);
  form_groups(self);
  watch_for_standstill(self, now);
  scale_by_load(self);
  settle(self);
  if (state.over) return;
  show_nodes(self);  // at every message it would cost more than the message
  self->delayed_send(self, kBeat, beat_atom_v);
}

CoordinatorActor::behavior_type coordinator_behavior(
    Self self, const std::shared_ptr<CoordinatorSetup>& setup) {
  CoordinatorState& state = self->state;
  state.setup = setup;
  state.host = make_node_host(self->system(), *setup, self);
  catch_exceptions(self, kName);
  // The end of the process or actor behind it says so too; this only notices a lost connection.
  self->set_down_handler([](const caf::down_msg&) {});
  const auto then = [self](auto handle) {
    return [self, handle](const auto& message) {
      ++self->state.setup->messages;
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
        ++self->state.setup->messages;
        if (!self->state.run) return;
        self->state.conditions[pong.node].busy_ms = pong.busy_ms;
        self->state.conditions[pong.node].busy_with = pong.busy_with;
        self->state.run->pong(pong.node, pong.incarnation, pong.number, pong.busy_ms,
                              pong.busy_with, Clock::now());
        settle(self);
      },
      [=](const PartWritten& part) { then(on_part)(part); },
      [=](const GroupWanted& wanted) { then(on_group_wanted)(wanted); },
      [self](const RendezvousRequest& request) -> caf::result<RendezvousAnswer> {
        const CoordinatorState& mine = self->state;
        const std::size_t group = request.group;
        if (group >= mine.rendezvous.size() || !mine.rendezvous[group] ||
            request.generation != mine.groups->group(group).generation)
          return caf::make_error(caf::sec::runtime_error, "that group of learners is over");
        return RendezvousAnswer{mine.rendezvous[group]->handle(request.bytes)};
      },
      [=](const EvaluationDone& done) { then(on_evaluation)(done); },
      [self](const EpisodeDone& episode) {
        ++self->state.setup->messages;
        self->send(self->state.setup->hub, episode);
      },
      [self](const Event& event) {
        tell(self, Tell{event.node, event.level, event.kind, event.text});
      },
      [self](const RoleEnded& ended) { self->state.host->note_end(ended); },
      [self](const NormaliserDelta& delta) {
        ++self->state.setup->messages;
        // The others have them from the one that leads.
        auto& groups = self->state.groups;
        to_node(self, groups ? groups->leader() : "learner-0", delta);
      },
      [self](const ControlRequest& request) { return on_control(self, request); },
      [self](beat_atom) { beat(self); },
  };
}

}  // namespace

void settle(Self self) {
  CoordinatorState& state = self->state;
  // An action may cause others at once.
  for (auto actions = state.run->take_actions(); !actions.empty();
       actions = state.run->take_actions())
    for (const Action& action : actions) std::visit(Execute{self}, action);
  if (!state.over) show_leaving_shards(self);
}

CoordinatorActor spawn_coordinator(caf::actor_system& system,
                                   std::shared_ptr<CoordinatorSetup> setup) {
  const CoordinatorActor coordinator = system.spawn(coordinator_behavior, setup);
  // One that fails leaves nodes behind whom nobody hears: the run is over with it.
  caf::actor_cast<caf::strong_actor_ptr>(coordinator)
      ->get()
      ->attach_functor([setup = std::move(setup)](const caf::error& reason) {
        if (reason) setup->on_over(1, "the coordinator stopped: " + to_string(reason));
      });
  return coordinator;
}

}  // namespace troupe::actors
