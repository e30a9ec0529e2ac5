// Implements the telemetry hub's actor.
#include "actors/roles/hub.hpp"

#include <bit>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "actors/runtime/log.hpp"
#include "actors/runtime/system.hpp"

namespace troupe::actors {
namespace {

using Json = nlohmann::json;

struct State {
  std::shared_ptr<HubSetup> setup;
  std::unique_ptr<telemetry::TelemetryHub> hub;
  std::map<std::string, std::string> roles;  // by node
  std::string last_file_error;
  bool over = false;
  static inline const char* name = "telemetry";
};

using Self = HubActor::stateful_pointer<State>;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void publish(Self self, const std::string& node, decltype(telemetry::Message::payload) payload,
             std::int64_t actor_steps = -1, std::int64_t updates = -1) {
  State& state = self->state;
  telemetry::Message message;
  message.node = node;
  message.actor_steps = actor_steps >= 0 ? actor_steps : state.hub->actor_steps();
  message.learner_updates = updates >= 0 ? updates : state.hub->learner_updates();
  message.payload = std::move(payload);
  state.setup->publisher->publish(std::move(message));
}

// A failing disk is told once per reason; the rows wait in memory meanwhile.
void check_files(Self self, const Result<void>& written) {
  State& state = self->state;
  const std::string error = written ? "" : written.error().message;
  if (error == state.last_file_error) return;
  state.last_file_error = error;
  const std::string text = error.empty() ? "the run's files can be written again" : error;
  log_warning("telemetry", text);
  publish(self, "telemetry", telemetry::Event{"warning", text});
}

double number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.get<std::string>();
  return text == "nan" ? std::nan("") : text == "inf" ? HUGE_VAL : -HUGE_VAL;
}

void on_report(Self self, const Report& report) {
  State& state = self->state;
  telemetry::NodeReport parsed{.node = report.node,
                               .role = state.roles[report.node],
                               .incarnation = report.incarnation,
                               .counters = {},
                               .gauges = {},
                               .waiting_on = {}};
  telemetry::Metrics metrics;
  try {
    const Json json = Json::parse(report.json);
    for (const auto& [name, value] : json.at("counters").items())
      metrics[name] = parsed.counters[name] = number(value);
    for (const auto& [name, value] : json.at("gauges").items())
      metrics[name] = parsed.gauges[name] = number(value);
    parsed.waiting_on = json.at("waiting_on").get<std::string>();
  } catch (const Json::exception&) {
    return state.hub->count("unreadable_reports");
  }
  state.hub->report(parsed, steady_seconds());
  publish(self, report.node, std::move(metrics));
}

void on_evaluation(Self self, const EvaluationDone& done) {
  State& state = self->state;
  telemetry::Evaluation evaluation;
  std::string report, found;
  try {
    const Json json = Json::parse(done.json);
    if (json.contains("report")) {
      report = json.at("report").dump();
      found = json.at("text").get<std::string>();
    }
    evaluation.returns = json.at("returns").get<std::vector<double>>();
    evaluation.lengths = json.at("lengths").get<std::vector<std::int64_t>>();
  } catch (const Json::exception&) {
    return state.hub->count("unreadable_evaluations");
  }
  const auto steps = static_cast<std::int64_t>(done.actor_steps);
  if (!evaluation.returns.empty()) state.hub->add_evaluation(evaluation, steps);
  char line[200];
  std::snprintf(line, sizeof line,
                "evaluation at %lld actor steps, update %llu: mean return %.1f over %zu episodes",
                static_cast<long long>(steps), static_cast<unsigned long long>(done.version),
                telemetry::mean(evaluation.returns), evaluation.returns.size());
  if (!found.empty()) {
    found = "evaluation at update " + std::to_string(done.version) + ": " + found;
    check_files(self, state.setup->files->add_report(steps, report));
  }
  if (state.setup->say) state.setup->say(found.empty() ? line : found);
  if (evaluation.returns.empty()) return;  // there were only pictures to look at
  check_files(self, state.setup->files->add_evaluation(steps, evaluation));
  publish(self, done.node, std::move(evaluation), steps, static_cast<std::int64_t>(done.version));
}

void beat(Self self) {
  State& state = self->state;
  const double now = steady_seconds();
  state.hub->set_count("telemetry_unsent",
                       static_cast<double>(state.setup->publisher->counts().unsent));
  state.hub->set_count("file_write_errors",
                       static_cast<double>(state.setup->files->counts().write_errors));
  const telemetry::RunStatus status = state.hub->status(now);
  check_files(self, state.setup->files->append(state.hub->row(now, telemetry::wall_time())));
  if (state.setup->show)
    state.setup->show(status, state.hub->actor_steps(), state.hub->learner_updates());
  publish(self, "coordinator", status);
}

bool on_phase(Self self, const RunPhase& phase) {
  State& state = self->state;
  state.hub->set_state(phase.state, phase.reason);
  beat(self);
  const bool final = telemetry::is_final(state.hub->status(steady_seconds()));
  if (final) {
    check_files(self, state.setup->files->flush());
    state.over = true;
    self->quit();
  }
  return true;
}

HubActor::behavior_type hub_behavior(Self self, const std::shared_ptr<HubSetup>& setup) {
  State& state = self->state;
  state.setup = setup;
  state.hub = std::make_unique<telemetry::TelemetryHub>(setup->options, steady_seconds());
  for (const auto& entry : setup->files->evaluations())
    state.hub->add_evaluation(entry.evaluation, entry.actor_steps);
  catch_exceptions(self, State::name);
  self->delayed_send(self, setup->every, beat_atom_v);
  return {
      [self](const Report& report) { on_report(self, report); },
      [self](const Event& event) {
        self->state.hub->count(event.kind);
        publish(self, event.node, telemetry::Event{event.level, event.text});
      },
      [self](const EpisodeDone& episode) {
        const telemetry::Episode done{
            std::bit_cast<double>(episode.return_bits), static_cast<std::int64_t>(episode.length),
            static_cast<std::int64_t>(episode.environment), episode.version};
        self->state.hub->add_episode(done);
        publish(self, episode.node, done);
      },
      [self](const EvaluationDone& done) { on_evaluation(self, done); },
      [self](const NodeState& node) {
        if (node.gone) return self->state.hub->remove_node(node.node);
        self->state.roles[node.node] = node.role;
        telemetry::NodeStatus status;
        status.node = node.node;
        status.role = node.role;
        status.state = node.state;
        status.pid = node.pid;
        self->state.hub->set_node(status);
      },
      [self](const RunPhase& phase) { return on_phase(self, phase); },
      [self](beat_atom) {
        if (self->state.over) return;
        beat(self);
        self->state.setup->publisher->serve_snapshots();
        self->delayed_send(self, self->state.setup->every, beat_atom_v);
      },
  };
}

}  // namespace

HubActor spawn_hub(caf::actor_system& system, std::shared_ptr<HubSetup> setup) {
  return system.spawn<caf::detached>(hub_behavior, std::move(setup));
}

}  // namespace troupe::actors
