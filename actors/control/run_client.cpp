// Implements the way to a live run: a probe, a connection, a request.
#include "actors/control/run_client.hpp"

#include <caf/scoped_actor.hpp>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "actors/messages/interfaces.hpp"
#include "actors/runtime/system.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kProbe{3000}, kConnect{5000};
constexpr int kTries = 3;  // a first connect may fail by chance

Result<caf::actor> connect(caf::actor_system& system, const RunEntry& run) {
  caf::scoped_actor self(system);
  std::optional<Error> error;
  std::string address;
  self->request(spawn_probe(system, kProbe), kProbe + kConnect, run.host, run.port)
      .receive(
          [&](bool answered, const std::string& text) {
            address = text;
            if (!answered) error = Error{ErrorCode::kUnavailable, text};
          },
          [&](const caf::error& reason) { error = connect_error(run.host, run.port, reason); });
  if (error) return tl::unexpected(*error);
  caf::actor found;
  self->request(system.middleman().actor_handle(), kConnect, caf::connect_atom_v, address, run.port)
      .receive(
          [&](const caf::node_id&, const caf::strong_actor_ptr& peer,
              const std::set<std::string>&) {
            if (peer)
              found = caf::actor_cast<caf::actor>(peer);
            else
              error = connect_error(run.host, run.port, caf::sec::no_actor_published_at_port);
          },
          [&](const caf::error& reason) { error = connect_error(run.host, run.port, reason); });
  if (error) return tl::unexpected(*error);
  return found;
}

Result<caf::actor> connect_patiently(caf::actor_system& system, const RunEntry& run) {
  auto connected = connect(system, run);
  for (int tried = 1;
       !connected && connected.error().code != ErrorCode::kInvalidArgument && tried < kTries;
       ++tried) {
    std::this_thread::sleep_for(milliseconds(200));
    connected = connect(system, run);
  }
  return connected;
}

}  // namespace

Result<std::string> ask_run(const RunEntry& run, const std::string& verb,
                            const std::string& arguments, milliseconds timeout) {
  if (run.port == 0)
    return fail(ErrorCode::kInvalidArgument,
                run.name +
                    " is deterministic and takes no requests; end it by a signal to process " +
                    std::to_string(run.pid));
  // Left behind: CAF 0.17 may hang in tearing down what is connected.
  auto* system = new System({.run = run.run_id}, [](caf::actor_system_config& config) {
    config.add_message_types<caf::id_block::troupe>();
  });
  const auto connected = connect_patiently(system->get(), run);
  if (!connected) return tl::unexpected(connected.error());
  caf::scoped_actor self(system->get());
  Result<std::string> answer = fail(ErrorCode::kInternal, "no answer");
  self->request(caf::actor_cast<CoordinatorActor>(*connected), timeout,
                ControlRequest{run.secret, verb, arguments})
      .receive(
          [&](const ControlAnswer& said) {
            answer = said.done ? Result<std::string>(said.text)
                               : fail(ErrorCode::kInvalidArgument, said.text);
          },
          [&](const caf::error& error) {
            answer = error == caf::sec::request_timeout
                         ? fail(ErrorCode::kTimeout, run.name + " did not answer in time")
                         : fail(ErrorCode::kUnavailable,
                                run.name + " does not answer: " + system->get().render(error));
          });
  return answer;
}

void leave(int exit_code) {
  std::fflush(stdout);
  std::fflush(stderr);
  std::_Exit(exit_code);
}

}  // namespace troupe::actors
