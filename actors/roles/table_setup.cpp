// Implements the shards' shares.
#include "actors/roles/table_setup.hpp"

#include <algorithm>

#include "actors/config/checks.hpp"
#include "envs/spec/random.hpp"

namespace troupe::actors {

replay::TableOptions table_options(const RunOptions& options, std::uint32_t index,
                                   std::uint32_t epoch) {
  const std::int64_t shards = options.replay.shards;
  replay::TableOptions table;
  table.capacity = std::max<std::int64_t>(1, options.replay.capacity / shards);
  table.limiter.kind = replay::LimiterKind::kAllowance;
  table.n_step = options.learners.learner.d4pg.n_step;
  table.discount = options.learners.learner.d4pg.discount;
  table.selector = options.replay.selector;
  table.priority_exponent = options.replay.priority_exponent;
  table.importance_exponent = options.replay.importance_exponent;
  table.weight_scale = weight_scale(options);
  table.compression = column_compression(options.replay).value_or(replay::ColumnCompression{});
  if (!options.replay.disk.folder.empty())
    table.disk = {options.replay.disk.folder, options.replay.disk.bytes / shards};
  table.shard = index;
  table.shard_epoch = epoch;
  table.seed = stream_seed(static_cast<std::uint64_t>(options.seed), "replay", index, epoch);
  return table;
}

replay::WeightScale weight_scale(const RunOptions& options) {
  return options.replay.weight_scale == "table" ? replay::WeightScale::kTable
                                                : replay::WeightScale::kBatch;
}

replay::LimiterOptions global_limiter_options(const RunOptions& options) {
  return {.min_size = options.replay.min_size,
          .samples_per_insert = samples_per_insert(options),
          .error_buffer = limiter_figures(options).error_buffer};
}

}  // namespace troupe::actors
