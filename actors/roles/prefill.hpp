// What a new run's tables begin with: replay.prefill, a file of episodes or the table of another
// run. Blocking; called by whoever owns the table, before it is served.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "actors/config/run_options.hpp"
#include "envs/spec/spec.hpp"
#include "replay/offline/episode.hpp"
#include "replay/offline/fill.hpp"

namespace troupe::actors {

// An episode file (replay/offline/episode_reader.hpp) or a table's checkpoint, opened for an
// environment. kNotFound, kIo or kCorrupt, naming the file.
Result<std::unique_ptr<replay::EpisodeSource>> open_episodes(const std::filesystem::path& path,
                                                             const EnvSpec& spec);

// fill() with actions of foreign files scaled from the environment's bounds to policy units.
Result<replay::FillReport> fill_table(replay::Table& table, replay::EpisodeSource& source,
                                      const EnvSpec& spec, replay::FillOptions options);

// Shard `shard` of the run takes its share of the file's episodes, past its limiter. Returns what
// it took in one sentence. kInvalidArgument too when the run has no environment actors and the
// share holds fewer items than its share of replay.min_size: nobody would ever add any. O(file).
Result<std::string> prefill_table(const RunOptions& options, const EnvSpec& spec,
                                  std::uint32_t shard, replay::Table& table);

}  // namespace troupe::actors
