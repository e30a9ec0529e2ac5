// `troupe replay serve`: offers tables to any process of this host.
#include <memory>

#include "actors/cli/replay_verbs.hpp"
#include "actors/cli/verbs.hpp"
#include "actors/service/service_config.hpp"

namespace troupe::actors::cli {
namespace {

// What the command line says; absent values leave those of the file.
struct ServeCommand {
  std::string config;
  std::string endpoint, checkpoints;
  std::string disk;
  std::int64_t disk_mib = -1, max_table_mib = -1, max_clients = -1, max_message_mib = -1;
  bool insecure = false;
};

int serve(const ServeCommand& command) {
  ServiceConfig config;
  if (!command.config.empty()) {
    if (const auto read = read_service_config(command.config, config); !read) {
      print_error(read.error().message);
      return 2;
    }
  }
  ServiceOptions& options = config.options;
  if (!command.endpoint.empty()) options.endpoint = command.endpoint;
  if (!command.checkpoints.empty()) options.checkpoint_directory = command.checkpoints;
  if (!command.disk.empty()) options.disk_folder = command.disk;
  if (command.disk_mib >= 0) options.disk_mib = command.disk_mib;
  if (command.max_table_mib >= 0) options.max_table_mib = command.max_table_mib;
  if (command.max_clients >= 0) options.max_clients = command.max_clients;
  if (command.max_message_mib >= 0) options.max_message_mib = command.max_message_mib;
  options.insecure = command.insecure;
  return serve_replay(config);
}

}  // namespace

void add_replay_serve(CLI::App& replay, int& exit_code) {
  CLI::App* verb = replay.add_subcommand("serve", "Serve replay tables to other processes");
  verb->footer(
      "Any client may declare tables; replay/PROTOCOL.md describes the messages, and\n"
      "replay/python/troupe_replay.py speaks them. Ends at SIGINT or SIGTERM.\n"
      "Example: troupe replay serve --endpoint tcp://127.0.0.1:7700");
  const auto command = std::make_shared<ServeCommand>();
  verb->add_option("--config", command->config, "YAML file with the same options and tables")
      ->type_name("FILE");
  verb->add_option("--endpoint", command->endpoint,
                   "tcp://127.0.0.1:PORT, or ipc://PATH; default: any free port")
      ->type_name("ADDRESS");
  verb->add_option(
          "--checkpoint-directory", command->checkpoints,
          "Where tables are kept: restored when declared, written on request and at the end")
      ->type_name("DIR");
  verb->add_option("--disk", command->disk,
                   "Keep steps in a file there instead of memory; what memory is left caches it")
      ->type_name("DIR");
  verb->add_option("--disk-mib", command->disk_mib,
                   "Set aside there at the start, for all tables together");
  verb->add_option("--max-table-mib", command->max_table_mib,
                   "Memory of all full tables; default: three quarters of the machine's");
  verb->add_option("--max-clients", command->max_clients, "Clients served at once");
  verb->add_option("--max-message-mib", command->max_message_mib, "Largest request or reply");
  verb->add_flag("--insecure", command->insecure,
                 "Allow an address that other hosts reach; there is no encryption");
  verb->callback([command, &exit_code] { exit_code = serve(*command); });
}

}  // namespace troupe::actors::cli
