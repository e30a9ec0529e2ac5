// Refuses, before a run starts, limiter settings under which inserts and samples would wait for
// each other for ever, with the arithmetic in the message. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "envs/spec/result.hpp"
#include "replay/rate_limiter.hpp"

namespace troupe::replay {

// The whole run's numbers, over all shards.
struct LimiterPlan {
  std::int64_t capacity = 1000000, min_size = 1000;
  double samples_per_insert = 32;
  std::optional<double> error_buffer{};  // samples; empty: 0.1 x min_size x samples_per_insert
  std::int64_t shards = 1;
  std::int64_t environment_actors = 1;
  std::int64_t credit = 2;    // unacknowledged chunks of each environment actor
  std::int64_t batch = 256;   // items of one sample call
  std::int64_t prefetch = 2;  // batches drawn ahead of the learner
  std::int64_t n_step = 1;
  std::int64_t max_times_sampled = 0;  // 0: no bound
  // kQueue or kStack: `capacity` items that are given once each; min_size, samples_per_insert,
  // error_buffer and max_times_sampled do not count.
  LimiterKind kind = LimiterKind::kRatio;
};

struct ShardLimits {
  std::int64_t capacity = 0;     // of each shard: capacity / shards, rounded down
  LimiterOptions limiter;        // over all shards together; a queue's or stack's is each shard's
  std::int64_t flush_steps = 1;  // longest chunk that environment actors send
};

// Items by which inserts may run ahead of or behind samples: 2 x error_buffer / SPI; infinite for
// SPI 0.
double band_items(double error_buffer, double samples_per_insert);

// max(1, band / (4 x environment actors x credit)), at most kMaxFlushSteps: all chunks under way
// fill a quarter of the band.
std::int64_t flush_steps(double band, std::int64_t environment_actors, std::int64_t credit);
inline constexpr std::int64_t kMaxFlushSteps = 256;

// kInvalidArgument when a number is out of range, or when
//   min_size > capacity, or more than min(shards, environment actors) shards hold,
//   error_buffer < max(1, SPI)                                  (dm-reverb's rule),
//   band < environment actors + prefetch x batch / SPI          (room for what is under way),
//   error_buffer < (largest chunk - 1) x SPI                    (min_size could never be reached),
//   band < largest chunk + batch / SPI                          (both sides could wait at once),
// with max_times_sampled also when check_draw_bound refuses or
//   min_size < batch                                            (draws could run out),
// and of a queue or stack only when
//   capacity < largest chunk + batch - 1                        (both sides could wait at once),
// where the largest chunk completes flush_steps + n_step - 1 items. A ratio is kept over all shards
// together; the numbers of a queue or stack are one shard's.
Result<ShardLimits> check_limiter(const LimiterPlan& plan);

// The parts of one table that its limiter must agree with; fields as in TableOptions.
struct TableParts {
  std::int64_t capacity = 0, capacity_bytes = 0, max_times_sampled = 0;
  std::string_view selector{};
};

// kInvalidArgument when a table whose items leave after max_times_sampled draws could not give
// samples_per_insert:
//   SPI > max_times_sampled,
//   SPI = max_times_sampled, and SPI x min_size + error_buffer > capacity or there are
//   capacity_bytes                                   (items could go before their last draw)
Result<void> check_draw_bound(const LimiterOptions& limiter, const TableParts& parts);

// kInvalidArgument when `limiter` is a queue or stack and a part contradicts it, or when it is
// neither and yet has a size.
Result<void> check_queue(const LimiterOptions& limiter, const TableParts& parts);

}  // namespace troupe::replay
