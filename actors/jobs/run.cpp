// `troupe run`: from a configuration to a finished run. Prepares the directory, starts hub and
// coordinator, and waits for the end.
#include <cstdio>
#include <random>

#include "actors/cli/commands.hpp"
#include "actors/cli/versions.hpp"
#include "actors/config/checks.hpp"
#include "actors/config/cluster_checks.hpp"
#include "actors/config/printer.hpp"
#include "actors/jobs/drive.hpp"
#include "actors/roles/coordinator.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/signals.hpp"
#include "actors/telemetry/console.hpp"

namespace troupe::actors {
namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void tell(const std::string& line) { log_info("run", line); }

Result<std::shared_ptr<HubSetup>> open_telemetry(const RunDirectory& directory,
                                                 const std::optional<CheckpointInfo>& restored,
                                                 const RunCounters& counters,
                                                 const ClusterSecurity& security, bool quiet) {
  const RunOptions& options = directory.options();
  auto hub = std::make_shared<HubSetup>();
  hub->every = options.telemetry.every;
  hub->options.job = options.job;
  hub->options.task =
      learns_from_pictures(options) ? options.data.set.kind : options.environment.name;
  hub->options.pid = ::getpid();
  hub->options.target_actor_steps = options.stop.actor_steps;
  hub->options.target_updates = options.stop.updates;
  hub->options.target_elapsed = static_cast<double>(options.stop.wall_time.count()) / 1000;
  if (!learns_from_pictures(options) && samples_per_insert(options) > 0)
    hub->options.samples_per_insert = options.replay.samples_per_insert;
  if (restored) {
    hub->options.restored_actor_steps = static_cast<std::int64_t>(restored->actor_steps);
    hub->options.restored_updates = static_cast<std::int64_t>(restored->version);
    hub->options.earlier_elapsed = static_cast<double>(counters.wall_ms) / 1000;
  }
  auto publisher = telemetry::Publisher::open({.run = directory.name(),
                                               .endpoint = options.telemetry.endpoint,
                                               .snapshot_endpoint = {},
                                               .curve = security.curve,
                                               .insecure = options.cluster.insecure});
  if (!publisher) return tl::unexpected(publisher.error());
  auto files = telemetry::RunFiles::open(directory.path(), hub->options.restored_actor_steps);
  if (!files) return tl::unexpected(files.error());
  const auto announced = telemetry::announce(
      directory.path(),
      telemetry::announcement_of_this_process(directory.name(), publisher->endpoint(),
                                              publisher->snapshot_endpoint()));
  if (!announced) return tl::unexpected(announced.error());
  tell("telemetry at " + publisher->endpoint() + " (troupe watch " + publisher->endpoint() + ")");
  hub->publisher = std::make_unique<telemetry::Publisher>(std::move(*publisher));
  hub->files = std::make_unique<telemetry::RunFiles>(std::move(*files));

  auto console =
      std::make_shared<telemetry::ProgressConsole>(stderr, telemetry::console_options(stderr));
  if (!quiet)
    hub->show = [console](const telemetry::RunStatus& status, std::int64_t steps,
                          std::int64_t updates) {
      if (telemetry::is_final(status))
        console->finish(status, steps, updates);
      else
        console->update(status, steps, updates, seconds());
    };
  hub->say = [console](const std::string& line) { console->print(line); };
  return hub;
}

// Which stop condition the restored checkpoint already meets; empty: none.
std::string reached(const Prepared& prepared) {
  const StopOptions& stop = prepared.directory.options().stop;
  const auto& restored = prepared.store->newest();
  if (!restored) return {};
  const auto compare = [](const char* key, std::uint64_t now, std::int64_t wanted) {
    if (wanted <= 0 || now < static_cast<std::uint64_t>(wanted)) return std::string();
    return std::string(key) + " is " + std::to_string(wanted) + ", the run has " +
           std::to_string(now);
  };
  for (const std::string& text :
       {compare("stop.actor_steps", restored->actor_steps, stop.actor_steps),
        compare("stop.updates", restored->version, stop.updates),
        compare("stop.wall_time in ms", prepared.counters.wall_ms, stop.wall_time.count())})
    if (!text.empty()) return text;
  const auto& wanted = stop.accuracy ? stop.accuracy : stop.mean_return;
  if (!wanted) return {};
  const auto evaluations = telemetry::EvaluationLog::open(
      prepared.directory.path() / "evaluations.npz", telemetry::kKeepAll);
  if (!evaluations || evaluations->entries().empty()) return {};
  const double mean = telemetry::mean(evaluations->entries().back().evaluation.returns);
  if (mean < *wanted) return {};
  return std::string(stop.accuracy ? "stop.accuracy" : "stop.return") + " is " +
         std::to_string(*wanted) + ", the last evaluation's " + std::to_string(mean);
}

Result<Prepared> prepare(const RunCommand& command) {
  auto directory = RunDirectory::open(command);
  if (!directory) return tl::unexpected(directory.error());
  const RunOptions& options = directory->options();
  (void)start_logging({.level = command.verbose ? LogLevel::kInfo : LogLevel::kWarning,
                       .console = true,
                       .file = (directory->path() / "log" / "coordinator.log").string(),
                       .file_level = LogLevel::kInfo});
  for (const std::string& note : directory->notes()) log_warning("run", note);
  for (const std::string& warning : security_warnings(options)) log_warning("run", warning);
  auto security = use_certificates(certificates_folder(options.cluster));
  if (!security) return tl::unexpected(security.error());
  auto store = CheckpointStore::open(directory->path() / "checkpoints", options.checkpoint.keep,
                                     [](const std::string& line) { log_warning("run", line); });
  if (!store) return tl::unexpected(store.error());
  auto restored = store->newest_valid([](const std::string& line) { log_warning("run", line); });
  // Starting anew beside them would cut the run's files and, in time, remove them.
  if (!restored && !store->empty())
    return fail(ErrorCode::kCorrupt, "none of the checkpoints in " +
                                         (directory->path() / "checkpoints").string() +
                                         " can be loaded; move that folder away to start anew");
  RunCounters counters;
  if (restored) {
    auto read = counters_from_json(restored->state_json);
    if (!read) return tl::unexpected(read.error());
    counters = std::move(*read);
    std::fprintf(stderr, "resuming %s from %s\n", directory->name().c_str(),
                 restored->directory.filename().c_str());
  }
  const double now = telemetry::wall_time();
  for (auto& written : {telemetry::record_command(directory->path(), {command.command_line}, now),
                        telemetry::record_versions(directory->path(), library_versions(), now)})
    if (!written) return tl::unexpected(written.error());
  store->set_newest(restored);
  auto sockets = SocketDirectory::make();
  if (!sockets) return tl::unexpected(sockets.error());
  Prepared prepared{std::move(*directory),
                    std::move(*sockets),
                    std::make_unique<CheckpointStore>(std::move(*store)),
                    std::move(counters),
                    nullptr,
                    std::nullopt,
                    std::move(*security)};
  if (!reached(prepared).empty()) return prepared;  // nothing is left to do, nothing is opened
  auto hub = open_telemetry(prepared.directory, restored, prepared.counters, prepared.security,
                            command.quiet);
  if (!hub) return tl::unexpected(hub.error());
  prepared.hub = std::move(*hub);
  return prepared;
}

// Exit code 2 for what the user can mend in the configuration, 1 for the rest.
int exit_code_of(const Error& error) {
  return error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kNotFound ? 2 : 1;
}

}  // namespace

int run_main(const RunCommand& command) {
  block_stop_signals();
  auto prepared = prepare(command);
  if (!prepared) {
    std::fprintf(stderr, "troupe: %s\n", prepared.error().message.c_str());
    return exit_code_of(prepared.error());
  }
  if (const std::string condition = reached(*prepared); !condition.empty()) {
    std::fprintf(stderr, "%s has finished already: %s; raise it to go on\n",
                 prepared->directory.name().c_str(), condition.c_str());
    return 0;
  }
  std::random_device entropy;  // names this start of the run, decides nothing in it
  const std::uint64_t run_id = (std::uint64_t{entropy()} << 32) | entropy();
  const std::filesystem::path directory = prepared->directory.path();
  forget_outcome(directory);
  if (prepared->directory.options().deterministic) {
    auto listing = RunListing::publish({.name = prepared->directory.name(),
                                        .directory = directory,
                                        .pid = ::getpid(),
                                        .run_id = std::to_string(run_id),
                                        .host = {},
                                        .port = 0,
                                        .secret = {}});
    if (listing) prepared->listing.emplace(*std::move(listing));
  }
  const RunOutcome outcome = prepared->directory.options().deterministic
                                 ? drive_deterministic(*prepared, run_id)
                                 : drive_topology(*prepared, run_id);
  telemetry::withdraw_announcement(directory);
  if (auto written = write_outcome(directory, outcome); !written)
    log_warning("run", written.error().message);
  flush_log();
  return outcome.exit_code;
}

}  // namespace troupe::actors
