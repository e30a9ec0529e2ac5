// `troupe replay import`: a file of episodes as a table's file, built as a run would build it.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "actors/cli/replay_source.hpp"
#include "actors/cli/replay_verbs.hpp"
#include "actors/cli/verbs.hpp"
#include "actors/config/reader.hpp"
#include "actors/roles/prefill.hpp"
#include "actors/roles/table_setup.hpp"
#include "replay/checkpoint.hpp"

namespace troupe::actors::cli {
namespace {

struct ImportCommand {
  std::filesystem::path file, out;
  std::string config, environment;
  std::vector<std::string> overrides;
  std::optional<std::int64_t> n_step, capacity;
  std::optional<double> discount;
};

// Of one table that holds everything: the configuration's, or the defaults of any run.
Result<RunOptions> options_of(const ImportCommand& command) {
  RunOptions options;
  if (!command.config.empty()) {
    auto config = load_config(command.config, command.overrides);
    if (!config) return fail(ErrorCode::kInvalidArgument, config.error().message);
    options = config->options;
  }
  if (!command.environment.empty()) options.environment.name = command.environment;
  if (options.environment.name.empty())
    return fail(ErrorCode::kInvalidArgument,
                "the environment is not known; give --config or --environment");
  learners::D4pgOptions& d4pg = options.learners.learner.d4pg;
  d4pg.n_step = command.n_step.value_or(d4pg.n_step);
  d4pg.discount = command.discount.value_or(d4pg.discount);
  options.replay.capacity = command.capacity.value_or(options.replay.capacity);
  options.replay.min_size = std::min(options.replay.min_size, options.replay.capacity);
  options.replay.shards = 1;
  return options;
}

Result<std::string> import_episodes(const ImportCommand& command) {
  const auto options = options_of(command);
  if (!options) return tl::unexpected(options.error());
  const auto spec = spec_of(options->environment.name, options->environment.time_limit);
  if (!spec) return fail(ErrorCode::kInvalidArgument, spec.error().message);
  auto source = open_episodes(command.file, *spec);
  if (!source) return tl::unexpected(source.error());
  auto table = replay::Table::create(table_options(*options, 0, 0), replay::signature_of(*spec));
  if (!table) return tl::unexpected(table.error());
  const auto report = fill_table(**table, **source, *spec, {.keep_versions = true});
  if (!report) return tl::unexpected(report.error());
  const std::string skipped = report->skipped_episodes == 0
                                  ? ""
                                  : "; " + std::to_string(report->skipped_episodes) +
                                        " episodes were passed over, the first because " +
                                        report->first_skipped;
  const replay::TableStatistics statistics = (*table)->statistics();
  if (statistics.held_items == 0)
    return fail(ErrorCode::kCorrupt, command.file.string() + " gives no item of " +
                                         std::to_string(options->learners.learner.d4pg.n_step) +
                                         " steps" + skipped);
  const auto written = replay::write_checkpoint((*table)->snapshot(), command.out);
  if (!written) return tl::unexpected(written.error());
  return command.out.string() + ": " + std::to_string(statistics.held_items) + " items of " +
         std::to_string(report->steps) + " steps, " + std::to_string(report->episodes) +
         " episodes, " + std::to_string(report->complete) + " of them complete, " +
         std::to_string(*written) + " bytes" + skipped;
}

int run_import(const ImportCommand& command) {
  const auto done = import_episodes(command);
  if (!done) {
    print_error(done.error().message);
    return exit_code_of(done.error());
  }
  std::printf("%s\n", done->c_str());
  return 0;
}

}  // namespace

void add_replay_import(CLI::App& replay, int& exit_code) {
  CLI::App* verb = replay.add_subcommand("import", "Build a table's file from a file of episodes");
  verb->footer(
      "Reads what `troupe replay export` writes, Minari's HDF5 files and D4RL's; actions of the "
      "last\n"
      "two are scaled from the environment's bounds. A run begins from FILE, or from OUT, by\n"
      "--set replay.prefill=FILE.\n"
      "Example: troupe replay import episodes.hdf5 replay.table --config configs/pendulum.yaml\n"
      "         troupe replay import main_data.hdf5 replay.table --environment pendulum --n-step "
      "5");
  const auto command = std::make_shared<ImportCommand>();
  verb->add_option("FILE", command->file, "File of episodes, or a table")->required();
  verb->add_option("OUT", command->out, "Table's file to write; replaced if it exists")->required();
  verb->add_option("--config", command->config, "Configuration that says how the table is built");
  add_overrides(*verb, command->overrides);
  verb->add_option("--environment", command->environment, "Task that the episodes are of")
      ->type_name("NAME");
  verb->add_option("--n-step", command->n_step, "Steps of an item")->check(CLI::Range(1, 1000));
  verb->add_option("--discount", command->discount, "Discount per control step")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option("--capacity", command->capacity, "Items held at most")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{4294967294}));
  verb->callback([command, &exit_code] { exit_code = run_import(*command); });
}

}  // namespace troupe::actors::cli
