// Implements the node's actor.
#include "actors/roles/node.hpp"

#include <unistd.h>

#include <caf/actor_system.hpp>
#include <caf/stateful_actor.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "actors/config/reader.hpp"
#include "actors/roles/cluster_security.hpp"
#include "actors/runtime/link.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/system.hpp"
#include "envs/spec/random.hpp"

namespace troupe::actors {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBeat{100};
constexpr milliseconds kConnectTimeout{5000};
constexpr milliseconds kHelloTimeout{10000};

// Spawned nodes also end on their lifeline; this is for a coordinator that lives but is out of
// reach.
constexpr milliseconds kGrace{60000};

struct State {
  NodeOptions options;
  std::optional<Link> link;  // none in the coordinator's own process
  CoordinatorActor coordinator;
  RoleActor role;
  std::shared_ptr<RoleBoard> board = std::make_shared<RoleBoard>();
  std::optional<Peers> peers;        // that came before the role
  std::optional<StepLimits> limits;  // likewise
  Clock::time_point reported_at{};
  bool ended = false;
  static inline const char* name = "node";
};

using Self = NodeActor::stateful_pointer<State>;

void end(Self self, const std::string& error, bool permanent = false) {
  State& state = self->state;
  if (std::exchange(state.ended, true)) return;
  if (!error.empty()) log_error(state.options.name, error);
  if (state.role) self->send(state.role, Shutdown{"the node ends"});
  state.role = nullptr;
  if (state.options.on_end) state.options.on_end(error, permanent);
  self->quit();
}

template <class T>
void to_coordinator(Self self, T message) {
  if (self->state.coordinator) self->send(self->state.coordinator, std::move(message));
}

template <class T>
void to_role(Self self, const T& message) {
  if (self->state.role) self->send(self->state.role, message);
}

// Starting again would not help.
void fail_for_good(Self self, const std::string& error) {
  const NodeOptions& options = self->state.options;
  to_coordinator(self, RoleEnded{options.name, options.incarnation, error, true});
  end(self, error, true);
}

void start_role(Self self, const Assignment& assignment) {
  State& state = self->state;
  if (state.role) return;  // the same node after a reconnect
  auto config = parse_config(assignment.config, "the configuration of the run");
  if (!config) return fail_for_good(self, config.error().message);
  if (state.link) {  // a process of its own
    const auto secured = use_certificates(certificates_folder(config->options.cluster));
    if (!secured) return fail_for_good(self, secured.error().message);
  }
  RoleContext context{.node = state.options.name,
                      .assignment = assignment,
                      .options = config->options,
                      .board = state.board,
                      .parent = self,
                      .in_process = !state.link.has_value()};
  auto role = state.options.make_role(self->system(), std::move(context));
  if (!role) return fail_for_good(self, role.error().message);
  state.role = *role;
  if (state.peers) self->send(state.role, *state.peers);
  if (state.limits) self->send(state.role, *state.limits);
}

void say_hello(Self self, std::uint64_t attempt) {
  State& state = self->state;
  const Hello hello{.node = state.options.name,
                    .incarnation = state.options.incarnation,
                    .protocol = kProtocolVersion,
                    .run_id = state.options.run_id,
                    .pid = ::getpid()};
  self->request(state.coordinator, kHelloTimeout, hello,
                caf::actor_cast<caf::strong_actor_ptr>(self))
      .then([self](const Assignment& assignment) { start_role(self, assignment); },
            [self, attempt](const caf::error& error) {
              const std::string text = self->system().render(error);
              if (self->state.link && error == caf::sec::request_timeout) {
                self->state.link->lost(attempt, text, Clock::now());
                return;
              }
              end(self, "the coordinator refuses this node: " + text);
            });
}

void follow_link(Self self) {
  State& state = self->state;
  const Link::Action action = state.link->tick(Clock::now());
  const std::uint64_t attempt = state.link->attempt();
  const auto failed = [self, attempt](const Error& error) {
    self->state.link->failed(attempt, error.message, Clock::now());
  };
  switch (action) {
    case Link::Action::kNothing:
      break;
    case Link::Action::kGiveUp:
      end(self, "the coordinator cannot be reached: " + state.link->reason());
      break;
    case Link::Action::kProbe:
      probe_address(
          self, state.options.host, state.options.port,
          [self, attempt](const std::string&) {
            self->state.link->answered(attempt, Clock::now());
          },
          failed);
      break;
    case Link::Action::kConnect:
      connect_to_answering(
          self, state.options.host, state.options.port, kConnectTimeout,
          [self, attempt](const caf::actor& actor) {
            if (!self->state.link->connected(attempt, Clock::now())) return;
            self->state.coordinator = caf::actor_cast<CoordinatorActor>(actor);
            self->monitor(self->state.coordinator);
            say_hello(self, attempt);
          },
          failed);
      break;
  }
}

void beat(Self self) {
  State& state = self->state;
  if (state.ended) return;
  if (state.link) follow_link(self);
  const auto now = Clock::now();
  if (state.role && now - state.reported_at >= kBeat) {
    state.reported_at = now;
    to_coordinator(
        self, Report{state.options.name, state.options.incarnation, to_json(state.board->read())});
  }
  self->delayed_send(self, kBeat, beat_atom_v);
}

// For the role, which knows no way to the coordinator of its own.
caf::result<RendezvousAnswer> ask_rendezvous(Self self, const RendezvousRequest& request) {
  if (!self->state.coordinator)
    return caf::make_error(caf::sec::runtime_error, "the coordinator is out of reach");
  auto promise = self->make_response_promise<RendezvousAnswer>();
  self->request(self->state.coordinator, kHelloTimeout, request)
      .then([promise](RendezvousAnswer& answer) mutable { promise.deliver(std::move(answer)); },
            [promise](caf::error& error) mutable { promise.deliver(std::move(error)); });
  return promise;
}

NodeActor::behavior_type node_behavior(Self self, const std::shared_ptr<NodeOptions>& options) {
  State& state = self->state;
  state.options = std::move(*options);
  catch_exceptions(self, state.options.name);
  if (state.options.coordinator) {
    state.coordinator = state.options.coordinator;
    say_hello(self, 0);
  } else {
    const auto seed =
        stream_seed(state.options.run_id, state.options.name, state.options.incarnation);
    state.link.emplace(LinkOptions{.grace = kGrace}, Random(seed), Clock::now());
  }
  self->set_down_handler([self](const caf::down_msg& down) {
    State& mine = self->state;
    if (!mine.link || down.source != caf::actor_cast<caf::actor_addr>(mine.coordinator)) return;
    mine.coordinator = nullptr;
    mine.link->lost(mine.link->attempt(), "the connection to the coordinator broke", Clock::now());
  });
  self->send(self, beat_atom_v);
  return {
      [self](const Ping& ping) {
        Pong pong{.node = self->state.options.name,
                  .incarnation = self->state.options.incarnation,
                  .number = ping.number,
                  .busy_ms = 0,
                  .busy_with = {}};
        pong.busy_ms = self->state.board->busy_ms(pong.busy_with);
        to_coordinator(self, std::move(pong));
      },
      [self](const Peers& peers) {
        self->state.peers = peers;
        to_role(self, peers);
      },
      [self](const StepLimits& limits) {
        self->state.limits = limits;
        to_role(self, limits);
      },
      [self](const CheckpointRequest& request) { to_role(self, request); },
      [self](const EvaluateRequest& request) { to_role(self, request); },
      [self](const Pause& pause) { to_role(self, pause); },
      [self](const GroupFormed& group) { to_role(self, group); },
      [self](const NormaliserDelta& delta) {
        if (delta.upwards)
          to_coordinator(self, NormaliserDelta{false, delta.bytes});
        else
          to_role(self, delta);
      },
      [self](const Drain& drain) {
        if (self->state.role)
          to_role(self, drain);  // RoleEnded follows
        else
          end(self, "");
      },
      [self](const Shutdown& shutdown) {
        if (self->state.role)
          to_role(self, shutdown);  // RoleEnded follows
        else
          end(self, "");
      },
      [self](const RoleReady& ready) { to_coordinator(self, ready); },
      [self](const PartWritten& part) { to_coordinator(self, part); },
      [self](const EvaluationDone& done) { to_coordinator(self, done); },
      [self](const EpisodeDone& episode) { to_coordinator(self, episode); },
      [self](const Event& event) { to_coordinator(self, event); },
      [self](const RoleEnded& ended) {
        const State& mine = self->state;  // its last counts are the run's
        to_coordinator(
            self, Report{mine.options.name, mine.options.incarnation, to_json(mine.board->read())});
        to_coordinator(self, ended);
        self->state.role = nullptr;
        end(self, ended.error, ended.permanent);
      },
      [self](const GroupWanted& wanted) { to_coordinator(self, wanted); },
      [self](const RendezvousRequest& request) { return ask_rendezvous(self, request); },
      [self](beat_atom) { beat(self); },
  };
}

}  // namespace

NodeActor spawn_node(caf::actor_system& system, NodeOptions options) {
  return system.spawn(node_behavior, std::make_shared<NodeOptions>(std::move(options)));
}

}  // namespace troupe::actors
