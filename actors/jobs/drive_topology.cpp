// Drives a run as a topology of actors.
#include <caf/scoped_actor.hpp>
#include <cstdio>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "actors/config/printer.hpp"
#include "actors/jobs/drive.hpp"
#include "actors/roles/coordinator.hpp"
#include "actors/runtime/lifeline.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/signals.hpp"
#include "actors/runtime/system.hpp"

namespace troupe::actors {
namespace {

std::string state_name(int exit_code) {
  return exit_code == 0 ? "finished" : exit_code == 130 ? "interrupted" : "failed";
}

}  // namespace

RunOutcome end_telemetry(caf::actor_system& system, const HubActor& hub, int code,
                         const std::string& text) {
  caf::scoped_actor self{system};
  self->request(hub, std::chrono::seconds(3), RunPhase{state_name(code), text, 0, 0})
      .receive([](bool) {}, [](const caf::error&) {});
  if (code == 1) std::fprintf(stderr, "troupe: the run failed: %s\n", text.c_str());
  return {state_name(code), text, code};
}

RunOutcome failed_outcome(const Error& error) {
  std::fprintf(stderr, "troupe: %s\n", error.message.c_str());
  return {state_name(1), error.message, 1};
}

RunOutcome drive_topology(Prepared& prepared, std::uint64_t run_id) {
  const RunOptions& options = prepared.directory.options();
  System system(
      {.run = std::to_string(run_id), .threads = 2},
      [](caf::actor_system_config& config) { config.add_message_types<caf::id_block::troupe>(); });
  const HubActor hub = spawn_hub(system.get(), prepared.hub);

  std::promise<std::pair<int, std::string>> over;
  auto setup = std::make_shared<CoordinatorSetup>();
  setup->options = options;
  setup->config = print_yaml(options);
  setup->run_id = run_id;
  setup->run_directory = prepared.directory.path();
  setup->socket_directory = prepared.sockets.path();
  setup->store = std::move(prepared.store);
  setup->counters = prepared.counters;
  setup->hub = hub;
  setup->secret = make_secret();
  // The first word counts: a coordinator may still fail after the end.
  setup->on_over = [&over, told = false](int code, const std::string& text) mutable {
    if (!std::exchange(told, true)) over.set_value({code, text});
  };
  const CoordinatorActor coordinator = spawn_coordinator(system.get(), setup);
  const auto port = publish_on_loopback(system.get(), caf::actor_cast<caf::actor>(coordinator));
  if (!port) return failed_outcome(port.error());
  setup->port = *port;
  std::unique_ptr<TlsRelay> relay;  // closed first: nobody joins a run that ends
  if (!options.cluster.listen.empty() && prepared.security.tls) {
    auto opened = open_relay(options.cluster, prepared.security, *port);
    if (!opened) return failed_outcome(opened.error());
    relay = std::move(*opened);
    log_info("run", "other hosts join at port " + std::to_string(relay->port()));
  }
  auto signals = SignalListener::start([&](int signal, int count) {
    const nlohmann::json stop{{"now", count > 1}, {"reason", "signal " + std::to_string(signal)}};
    caf::anon_send(coordinator, ControlRequest{setup->secret, "stop", stop.dump()});
  });
  if (!signals) return failed_outcome(signals.error());
  auto listing = RunListing::publish({.name = prepared.directory.name(),
                                      .directory = prepared.directory.path(),
                                      .pid = ::getpid(),
                                      .run_id = std::to_string(run_id),
                                      .host = "127.0.0.1",
                                      .port = *port,
                                      .secret = setup->secret});
  if (!listing) return failed_outcome(listing.error());
  if (!listing->note().empty()) log_warning("run", listing->note());
  prepared.listing.emplace(*std::move(listing));
  caf::anon_send(hub, RunPhase{"running", {}, 0, 0});
  caf::anon_send(coordinator, beat_atom_v);

  const auto [code, text] = over.get_future().get();
  exit_after(std::chrono::milliseconds(5000), code, "the run's own process did not end in time");
  return end_telemetry(system.get(), hub, code, text);
}

}  // namespace troupe::actors
