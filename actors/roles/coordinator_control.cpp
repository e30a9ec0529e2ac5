// What the coordinator does for whoever controls the run from outside, and its status as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "actors/config/checks.hpp"
#include "actors/roles/coordinator_state.hpp"

namespace troupe::actors {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using Self = CoordinatorSelf;

namespace {

const char* name_of(RunState::Phase phase) {
  switch (phase) {
    case RunState::Phase::kRunning:
      return "running";
    case RunState::Phase::kSaving:
      return "saving";
    case RunState::Phase::kLeaving:
      return "leaving";
    case RunState::Phase::kOver:
      break;
  }
  return "over";
}

Json node_json(Self self, const NodePlan& plan, Clock::time_point now) {
  const CoordinatorState& state = self->state;
  const RunState::NodeView view = state.run->view(plan.name, now);
  Json json{{"name", plan.name},
            {"role", plan.role},
            {"host", state.host->host_of(plan.name)},
            {"state", view.state},
            {"pid", state.host->pid_of(plan.name)},
            {"incarnation", view.incarnation},
            {"restarts", {{"left", view.restarts_left}, {"allowed", view.restarts_allowed}}}};
  if (view.restart_in.count() > 0) json["restart_in_ms"] = view.restart_in.count();
  const auto found = state.conditions.find(plan.name);
  if (found == state.conditions.end() || view.state != "ready") return json;
  const Condition& condition = found->second;
  json["waiting_on"] = condition.waiting_on;
  json["busy_ms"] = condition.busy_ms;
  json["busy_with"] = condition.busy_with;
  if (!condition.version) return json;
  json["version"] = *condition.version;
  if (plan.role != "learner")
    json["lag"] = state.run->version() - std::min(state.run->version(), *condition.version);
  return json;
}

// By the words of "scale".
Json counts_json(const RunState& run, const RunOptions& options) {
  Json counts = Json::object();
  const auto add = [&](const char* word, const std::string& role) -> Json& {
    const auto planned = std::count_if(run.plan().begin(), run.plan().end(),
                                       [&](const NodePlan& plan) { return plan.role == role; });
    return counts[word] = {{"ready", run.ready(role)}, {"wanted", planned}};
  };
  Json& actors = add("actors", learns_from_pictures(options) ? "data" : "environment");
  actors["min"] = options.actors.min;
  actors["max"] = options.actors.max;
  Json& learners = add("learners", "learner");
  if (!is_asynchronous(options) && most_learners(options) > 1) {
    learners["min"] = 1;
    learners["max"] = most_learners(options);
  }
  if (parameter_servers(options) > 0) add("parameter_servers", "parameter_server");
  if (shards_apart(options)) add("shards", "shard");
  return counts;
}

Json status_json(Self self) {
  const CoordinatorState& state = self->state;
  const RunState& run = *state.run;
  const auto now = Clock::now();
  const ShardLedger all = run.ledger();
  Json nodes = Json::array();
  for (const NodePlan& plan : run.plan()) nodes.push_back(node_json(self, plan, now));
  Json checkpoint{{"error", run.checkpoint_error()}};
  if (const auto& newest = state.setup->store->newest())
    checkpoint["newest"] = newest->directory.filename().string();
  return {{"run", state.setup->run_directory.filename().string()},
          {"directory", state.setup->run_directory.string()},
          {"pid", ::getpid()},
          {"state", name_of(run.phase())},
          {"reason", run.stopping()},
          {"wall_seconds", static_cast<double>(run.wall_ms(now)) / 1000},
          {"actor_steps", run.actor_steps()},
          {"version", run.version()},
          {"ledger",
           {{"inserted", all.inserted},
            {"prefilled", all.prefilled},
            {"held", all.held},
            {"removed", all.removed},
            {"lost_with_shard", run.counters().lost_with_shard}}},
          {"checkpoint", checkpoint},
          {"counts", counts_json(run, state.setup->options)},
          {"nodes", nodes}};
}

ControlAnswer stop(Self self, const Json& arguments) {
  const bool now = arguments.value("now", false);
  const std::string reason = arguments.value("reason", std::string("`troupe stop`"));
  self->state.run->stop(reason, true, now, Clock::now());
  return {true, std::string("the run stops") + (now ? ", without a checkpoint" : "")};
}

ControlAnswer scale(Self self, const Json& arguments) {
  std::map<std::string, std::uint32_t> counts;
  for (const auto& [word, count] : arguments.items()) counts[word] = count.get<std::uint32_t>();
  const auto scaled = self->state.run->scale(counts, Clock::now());
  if (!scaled) return {false, scaled.error().message};
  resize_peers(self);
  return {true, *scaled};
}

ControlAnswer carry_out(Self self, const ControlRequest& request) {
  const Json arguments = Json::parse(request.arguments.empty() ? "{}" : request.arguments);
  if (request.verb == "status")
    return {true, status_json(self).dump(2, ' ', false, Json::error_handler_t::replace)};
  if (request.verb == "stop") return stop(self, arguments);
  if (request.verb == "scale") return scale(self, arguments);
  if (request.verb == "drain") {
    const auto drained =
        self->state.run->drain(arguments.at("node").get<std::string>(), Clock::now());
    return drained ? ControlAnswer{true, *drained} : ControlAnswer{false, drained.error().message};
  }
  return {false, "this run knows no \"" + request.verb + "\""};
}

}  // namespace

void scale_by_load(Self self) {
  constexpr std::chrono::seconds kEvery{1};
  CoordinatorState& state = self->state;
  const auto now = Clock::now();
  if (!state.scaling || state.run->phase() != RunState::Phase::kRunning ||
      now - state.scaling_looked < kEvery)
    return;
  state.scaling_looked = now;
  ActorLoad load;
  for (const NodePlan& plan : state.run->plan()) {
    if (!is_actor(plan.role) && plan.role != "learner") continue;
    if (state.run->state_of(plan.name) != "ready") return;  // one comes or goes
    const Condition& condition = state.conditions[plan.name];
    if (plan.role != "learner") {
      ++load.actors;
      load.insert_blocked_ms += condition.insert_blocked_ms;
    } else if (!state.groups || state.groups->leader() == plan.name) {
      load.sample_blocked_ms = condition.sample_blocked_ms;
    }
  }
  load.steps = static_cast<double>(state.run->actor_steps());
  const auto decision = state.scaling->look(load, now);
  if (!decision || decision->actors == load.actors) return;
  const auto scaled =
      state.run->scale({{"actors", static_cast<std::uint32_t>(decision->actors)}}, now);
  tell(self, scaled ? Tell{"", "info", "scaled_by_load", *scaled + ", because " + decision->why}
                    : Tell{"", "warning", "scaled_by_load", scaled.error().message});
}

ControlAnswer on_control(Self self, const ControlRequest& request) {
  CoordinatorState& state = self->state;
  if (request.secret != state.setup->secret) {
    tell(self, Tell{"", "warning", "refused_control",
                    "refuses \"" + request.verb.substr(0, 20) +
                        "\" of somebody who does not know the run's secret"});
    return {false, "that is not the secret of this run"};
  }
  if (!state.run || state.over) return {false, "the run is just beginning or over; try again"};
  ControlAnswer answer;
  try {
    answer = carry_out(self, request);
  } catch (const Json::exception& error) {
    return {false, std::string("that request cannot be read: ") + error.what()};
  }
  settle(self);
  return answer;
}

}  // namespace troupe::actors
