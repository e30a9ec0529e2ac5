// A child process of a run: one node, until the coordinator or its lifeline ends it.
#include <csignal>
#include <cstdlib>
#include <future>

#include "actors/cli/commands.hpp"
#include "actors/messages/messages.hpp"
#include "actors/roles/node.hpp"
#include "actors/runtime/lifeline.hpp"
#include "actors/runtime/log.hpp"
#include "actors/runtime/signals.hpp"
#include "actors/runtime/system.hpp"
#include "actors/runtime/thread_settings.hpp"

namespace troupe::actors {
namespace {

constexpr std::chrono::milliseconds kOrphanDeadline{3000};
constexpr std::chrono::milliseconds kExitDeadline{3000};

}  // namespace

int node_main(const NodeCommand& command) {
  block_stop_signals();
  (void)start_logging({.level = LogLevel::kInfo, .console = true, .file = {}});
  const auto colon = command.connect.rfind(':');
  const int port = colon == std::string::npos ? 0 : std::atoi(command.connect.c_str() + colon + 1);
  if (port <= 0 || port > 65535) {
    log_error(command.name, "--connect expects HOST:PORT, found " + command.connect);
    return 2;
  }
  std::promise<std::string> ended;
  auto once = std::make_shared<std::once_flag>();
  const auto end = [&ended, once](const std::string& error) {
    std::call_once(*once, [&] { ended.set_value(error); });
  };
  const auto lifeline =
      Lifeline::attach([&] { end("the process that started this node is gone"); }, kOrphanDeadline);

  System system({.run = std::to_string(command.run_id)}, [](caf::actor_system_config& config) {
    config.add_message_types<caf::id_block::troupe>();
  });
  NodeActor node =
      spawn_node(system.get(), {.name = command.name,
                                .incarnation = command.incarnation,
                                .run_id = command.run_id,
                                .coordinator = {},
                                .host = command.connect.substr(0, colon),
                                .port = static_cast<std::uint16_t>(port),
                                .on_end = [&](const std::string& error, bool) { end(error); }});
  // A terminal's Ctrl-C does not come here (own process group); a TERM from elsewhere ends the node
  // in order.
  auto signals =
      SignalListener::start([&](int, int) { caf::anon_send(node, Shutdown{"a signal"}); });
  const std::string error = ended.get_future().get();
  // The last message to the coordinator is on its way; nothing of this process needs tearing down,
  // and CAF 0.17 may hang doing so.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  exit_after(kExitDeadline, 1, "the node did not end in time");
  flush_log();
  std::_Exit(error.empty() ? 0 : 1);
}

}  // namespace troupe::actors
