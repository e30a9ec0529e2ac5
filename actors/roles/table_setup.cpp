// Implements the shards' shares.
#include "actors/roles/table_setup.hpp"

#include <algorithm>

#include "actors/config/checks.hpp"
#include "envs/spec/random.hpp"

namespace troupe::actors {

replay::TableOptions table_options(const RunOptions& options, std::uint32_t index,
                                   std::uint32_t epoch) {
  const std::int64_t shards = options.replay.shards;
  const auto share = [&](std::int64_t whole) { return std::max<std::int64_t>(1, whole / shards); };
  replay::TableOptions table;
  table.capacity = share(options.replay.capacity);
  table.limiter.min_size = share(options.replay.min_size);
  table.limiter.samples_per_insert = samples_per_insert(options);
  table.limiter.error_buffer = limiter_figures(options).error_buffer / static_cast<double>(shards);
  table.n_step = options.learners.learner.d4pg.n_step;
  table.discount = options.learners.learner.d4pg.discount;
  table.selector = options.replay.selector;
  table.compression = column_compression(options.replay).value_or(replay::ColumnCompression{});
  if (!options.replay.disk.folder.empty())
    table.disk = {options.replay.disk.folder, options.replay.disk.bytes / shards};
  table.shard = index;
  table.shard_epoch = epoch;
  table.seed = stream_seed(static_cast<std::uint64_t>(options.seed), "replay", index, epoch);
  return table;
}

}  // namespace troupe::actors
