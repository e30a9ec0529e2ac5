// Implements the filling of tables before a run.
#include "actors/roles/prefill.hpp"

#include <algorithm>
#include <cstring>
#include <system_error>

#include "actors/config/checks.hpp"
#include "envs/action_map.hpp"
#include "replay/checkpoint.hpp"
#include "replay/offline/episode_reader.hpp"
#include "replay/offline/stored_episodes.hpp"

namespace troupe::actors {
namespace {

// Puts f32 actions in the environment's bounds into [-1, 1].
Result<void> scale_actions(const envs::ActionMap& map, std::vector<std::uint8_t>& bytes) {
  const auto width = static_cast<std::size_t>(map.size());
  std::vector<float> stored(width);
  std::vector<double> action(width);
  for (std::size_t at = 0; at + width * sizeof(float) <= bytes.size();
       at += width * sizeof(float)) {
    std::memcpy(stored.data(), bytes.data() + at, width * sizeof(float));
    action.assign(stored.begin(), stored.end());
    map.to_policy(action, stored);
    std::memcpy(bytes.data() + at, stored.data(), width * sizeof(float));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<replay::EpisodeSource>> open_episodes(const std::filesystem::path& path,
                                                             const EnvSpec& spec) {
  const replay::Signature signature = replay::signature_of(spec);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return fail(ErrorCode::kNotFound, "cannot open " + path.string() + ": no such file");
  if (replay::is_hdf5_file(path)) {
    auto file = replay::open_episode_file(path, signature);
    if (!file) return tl::unexpected(file.error());
    return *std::move(file);
  }
  auto snapshot = replay::read_checkpoint(path, signature);
  if (!snapshot)
    return fail(snapshot.error().code,
                snapshot.error().message + " (an episode file or a table was expected)");
  return std::make_unique<replay::StoredEpisodes>(*snapshot);
}

Result<replay::FillReport> fill_table(replay::Table& table, replay::EpisodeSource& source,
                                      const EnvSpec& spec, replay::FillOptions options) {
  const auto map = envs::ActionMap::make(spec.action, spec.name);
  if (!map) return tl::unexpected(map.error());
  const bool discrete = spec.action.discrete;
  options.convert_actions = [&](replay::Chunk& steps) -> Result<void> {
    if (discrete) return {};
    return scale_actions(*map, steps.step.front());
  };
  return replay::fill(table, source, options);
}

Result<std::string> prefill_table(const RunOptions& options, const EnvSpec& spec,
                                  std::uint32_t shard, replay::Table& table) {
  const std::string& path = options.replay.prefill;
  auto source = open_episodes(path, spec);
  if (!source) return fail(source.error().code, "replay.prefill: " + source.error().message);
  const auto report =
      fill_table(table, **source, spec,
                 {.part = shard, .parts = static_cast<std::uint32_t>(options.replay.shards)});
  if (!report) return fail(report.error().code, "replay.prefill: " + report.error().message);
  const std::uint64_t held = table.statistics().held_items;
  const auto min_size = static_cast<std::uint64_t>(
      (options.replay.min_size + options.replay.shards - 1) / options.replay.shards);
  if (is_offline(options) && held < min_size)
    return fail(ErrorCode::kInvalidArgument,
                "replay.prefill: " + path + " gives shard " + std::to_string(shard) + " only " +
                    std::to_string(held) + " items, of which replay.min_size asks " +
                    std::to_string(min_size) + " of each, and no environment actor will add any");
  std::string note = "shard " + std::to_string(shard) + " begins with " +
                     std::to_string(report->steps) + " steps of " +
                     std::to_string(report->episodes) + " episodes from " + path + ", " +
                     std::to_string(held) + " items";
  if (report->skipped_episodes > 0)
    note += "; " + std::to_string(report->skipped_episodes) +
            " episodes were passed over, the first because " + report->first_skipped;
  return note;
}

}  // namespace troupe::actors
