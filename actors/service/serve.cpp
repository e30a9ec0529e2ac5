// The service as a program: signals, the loop, the last checkpoint.
#include <atomic>
#include <cstdio>

#include "actors/runtime/log.hpp"
#include "actors/runtime/signals.hpp"
#include "actors/runtime/zmq_context.hpp"
#include "actors/service/service_config.hpp"

namespace troupe::actors {
namespace {

constexpr const char* kName = "replay";
constexpr std::chrono::milliseconds kTurn{200};  // how soon a signal is noticed

// Opens the service with its first tables; the exit code when that fails.
Result<std::unique_ptr<ReplayService>> open_service(const ServiceConfig& config) {
  auto service = ReplayService::open(config.options);
  if (!service) return service;
  for (const TableRequest& table : config.tables) {
    const auto notes = (*service)->add_table(table);
    if (!notes) return tl::unexpected(notes.error());
    for (const std::string& note : *notes) log_info(kName, note);
  }
  return service;
}

int finish(ReplayService& service) {
  const auto written = service.write_checkpoints();
  if (written) return 0;
  log_error(kName, "checkpoint not written: " + written.error().message);
  return 1;
}

}  // namespace

int serve_replay(const ServiceConfig& config) {
  block_stop_signals();
  std::atomic<bool> stop = false, hurry = false;
  const auto listener = SignalListener::start([&](int, int count) {
    stop = true;
    hurry = count > 1;
  });
  if (!listener) {
    log_error(kName, listener.error().message);
    return 1;
  }
  int exit_code = 0;
  {
    auto service = open_service(config);
    if (!service) {
      log_error(kName, service.error().message);
      return service.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
    }
    if (!is_loopback(config.options.endpoint))
      log_warning(kName, "other hosts can reach this service, and nothing is encrypted or checked");
    log_info(kName, "at most " + std::to_string((*service)->memory_bound() >> 20) +
                        " MiB beyond the tables, if every client uses all it may");
    std::printf("serving %s\n", (*service)->endpoint().c_str());
    std::fflush(stdout);
    while (!stop) (*service)->serve(kTurn);
    if (!hurry) exit_code = finish(**service);
  }
  close_zmq_context();
  return exit_code;
}

}  // namespace troupe::actors
