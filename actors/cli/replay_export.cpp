// `troupe replay export`: the episodes of a run's tables as one HDF5 file, or as a data set that
// Minari loads.
#include <cstdio>
#include <memory>
#include <system_error>

#include "actors/cli/minari_metadata.hpp"
#include "actors/cli/replay_source.hpp"
#include "actors/cli/replay_verbs.hpp"
#include "actors/cli/verbs.hpp"
#include "envs/spec/files.hpp"
#include "replay/offline/episode_writer.hpp"
#include "replay/offline/stored_episodes.hpp"

namespace troupe::actors::cli {
namespace {

namespace fs = std::filesystem;

struct ExportCommand {
  fs::path source, out;
  std::string environment;
  replay::EpisodeWriteOptions options;
  bool minari = false;
};

Result<void> add_table(replay::Table& table, replay::EpisodeWriter& writer) {
  replay::StoredEpisodes episodes(table.snapshot());
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    auto added = episodes.read(i).and_then(
        [&](const replay::Episode& episode) { return writer.add(episode); });
    if (!added) return added;
  }
  writer.leave_out(episodes.steps_left_out());
  return {};
}

// A name given on the command line must be that of the table's own environment.
Result<std::optional<EnvSpec>> known_spec(const ExportCommand& command, const ReplaySource& source,
                                          const replay::Signature& signature) {
  const bool named = !command.environment.empty();
  const std::string& name = named ? command.environment : source.environment;
  if (name.empty() && command.minari)
    return fail(ErrorCode::kInvalidArgument,
                "Minari wants the spaces of the environment, which a table alone does not know; "
                "name it with --environment");
  if (name.empty()) return std::nullopt;
  auto spec = spec_of(name, source.time_limit);
  if (!spec) return fail(ErrorCode::kInvalidArgument, spec.error().message);
  if (hash_of(*spec) == signature.spec_hash) return *std::move(spec);
  return fail(ErrorCode::kInvalidArgument,
              source.tables.front().string() + " was not written for " + name +
                  ": it has the spec hash " + std::to_string(signature.spec_hash) + ", not " +
                  std::to_string(hash_of(*spec)));
}

Result<replay::EpisodeTotals> export_episodes(const ExportCommand& command, const fs::path& file,
                                              std::optional<EnvSpec>& spec) {
  const auto source = find_tables(command.source);
  if (!source) return tl::unexpected(source.error());
  std::unique_ptr<replay::EpisodeWriter> writer;
  replay::EpisodeFileHead head;
  for (const fs::path& path : source->tables) {
    const auto table = load_table(path);
    if (!table) return tl::unexpected(table.error());
    if (!writer) {
      head.signature = (*table)->signature();
      auto known = known_spec(command, *source, head.signature);
      if (!known) return tl::unexpected(known.error());
      spec = *std::move(known);
      if (spec) {
        head.environment = spec->name;
        head.action = spec->action;
      }
      head.n_step = (*table)->options().n_step;
      head.discount = (*table)->options().discount;
      auto created = replay::EpisodeWriter::create(file, head, command.options);
      if (!created) return tl::unexpected(created.error());
      writer = *std::move(created);
    }
    if ((*table)->signature() != head.signature)
      return fail(ErrorCode::kCorrupt,
                  path.string() + " holds steps of another environment than the first table");
    if (auto added = add_table(**table, *writer); !added) return tl::unexpected(added.error());
  }
  return writer->commit();
}

// OUT/data/{main_data.hdf5, metadata.json}, the folder of one data set under Minari's root.
Result<replay::EpisodeTotals> export_minari(const ExportCommand& command) {
  const fs::path data = command.out / "data";
  std::error_code error;
  fs::create_directories(data, error);
  if (error) return fail(ErrorCode::kIo, "cannot create " + data.string() + ": " + error.message());
  std::optional<EnvSpec> spec;
  auto totals = export_episodes(command, data / "main_data.hdf5", spec);
  if (!totals) return totals;
  const std::string metadata =
      minari_metadata(*spec, command.out.filename().string(), *totals).dump(2);
  if (auto written = write_file(data / "metadata.json", metadata); !written)
    return tl::unexpected(written.error());
  return totals;
}

int run_export(const ExportCommand& command) {
  std::optional<EnvSpec> spec;
  const auto totals =
      command.minari ? export_minari(command) : export_episodes(command, command.out, spec);
  if (!totals) {
    print_error(totals.error().message);
    return exit_code_of(totals.error());
  }
  std::printf("%s: %llu steps of %llu episodes, %llu of them complete, %llu bytes\n",
              command.out.c_str(), static_cast<unsigned long long>(totals->steps),
              static_cast<unsigned long long>(totals->episodes),
              static_cast<unsigned long long>(totals->complete),
              static_cast<unsigned long long>(totals->bytes));
  return 0;
}

}  // namespace

void add_replay_export(CLI::App& replay, int& exit_code) {
  CLI::App* verb = replay.add_subcommand("export", "Write the episodes of tables to an HDF5 file");
  verb->footer(
      "The file has Minari's layout: a group episode_I with observations [S + 1], actions, "
      "rewards,\n"
      "terminations and truncations [S]. Actions are in [-1, 1] per component. What is missing of "
      "an\n"
      "episode is marked: first_step > 0, end \"open\".\n"
      "Example: troupe replay export runs/first episodes.hdf5\n"
      "         troupe replay export runs/first/checkpoints/latest/replay-0.table shard0.hdf5\n"
      "         troupe replay export runs/first ~/.minari/datasets/first-v0 --minari");
  const auto command = std::make_shared<ExportCommand>();
  verb->add_option("SOURCE", command->source,
                   "A run's directory, a checkpoint's, or a table's file")
      ->required();
  verb->add_option("OUT", command->out, "File to write; replaced if it exists")->required();
  verb->add_option("--deflate", command->options.deflate, "Compression, 0 (none) to 9")
      ->check(CLI::Range(0, 9));
  verb->add_option("--environment", command->environment,
                   "Name of a single table's environment, for the file's head")
      ->type_name("NAME");
  verb->add_flag("--minari", command->minari,
                 "OUT is a folder, made into a data set that minari.load_dataset finds");
  verb->callback([command, &exit_code] { exit_code = run_export(*command); });
}

}  // namespace troupe::actors::cli
