// The checks of limiter_check.hpp, in its order.
#include "replay/limiter_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

namespace troupe::replay {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

Result<void> check_ranges(const LimiterPlan& plan) {
  struct Range {
    const char* name;
    std::int64_t value;
  };
  for (const auto& [name, value] :
       {Range{"capacity", plan.capacity}, Range{"min_size", plan.min_size},
        Range{"shards", plan.shards}, Range{"environment actors", plan.environment_actors},
        Range{"credit", plan.credit}, Range{"batch", plan.batch}, Range{"prefetch", plan.prefetch},
        Range{"n_step", plan.n_step}})
    if (value < 1)
      return fail(ErrorCode::kInvalidArgument,
                  std::string(name) + " is " + std::to_string(value) + "; at least 1 is needed");
  if (plan.max_times_sampled < 0)
    return fail(ErrorCode::kInvalidArgument, "max_times_sampled is " +
                                                 std::to_string(plan.max_times_sampled) +
                                                 "; 0 for no bound or more are allowed");
  if (plan.kind != LimiterKind::kRatio) return {};
  if (!std::isfinite(plan.samples_per_insert) || plan.samples_per_insert < 0)
    return fail(ErrorCode::kInvalidArgument, "samples_per_insert must be a number >= 0");
  if (plan.error_buffer && !(std::isfinite(*plan.error_buffer) && *plan.error_buffer > 0))
    return fail(ErrorCode::kInvalidArgument, "error_buffer must be a number > 0");
  if (plan.min_size > plan.capacity)
    return fail(ErrorCode::kInvalidArgument,
                "min_size " + std::to_string(plan.min_size) + " exceeds capacity " +
                    std::to_string(plan.capacity) + ": no sample could ever be drawn");
  return {};
}

// The run's numbers with the names they have in messages.
struct Numbers {
  double spi, buffer, band, actors, batch, prefetch, chunk;

  std::string band_text() const {
    return "2 x error_buffer / samples_per_insert = 2 x " + number(buffer) + " / " + number(spi) +
           " = " + number(band) + " items";
  }
};

Result<void> check_band(const Numbers& s) {
  const double smallest = std::max(1.0, s.spi);
  if (s.buffer < smallest)
    return fail(ErrorCode::kInvalidArgument,
                "error_buffer " + number(s.buffer) + " is below max(1, samples_per_insert) = " +
                    number(smallest) + ": one insert alone would pass it; raise error_buffer");
  const double under_way = s.actors + s.prefetch * s.batch / s.spi;
  if (s.band < under_way)
    return fail(ErrorCode::kInvalidArgument,
                s.band_text() +
                    ", but what is under way needs environment actors + prefetch x batch / "
                    "samples_per_insert = " +
                    number(s.actors) + " + " + number(s.prefetch) + " x " + number(s.batch) +
                    " / " + number(s.spi) + " = " + number(under_way) + "; raise error_buffer to " +
                    number(std::ceil(under_way * s.spi / 2)) + " or lower prefetch or batch");
  if (s.buffer < (s.chunk - 1) * s.spi)
    return fail(ErrorCode::kInvalidArgument,
                "error_buffer " + number(s.buffer) +
                    " is below (largest chunk - 1) x samples_per_insert = (" + number(s.chunk) +
                    " - 1) x " + number(s.spi) + " = " + number((s.chunk - 1) * s.spi) +
                    ": min_size might never be reached; raise error_buffer or lower n_step");
  const double at_once = s.chunk + s.batch / s.spi;
  if (s.band < at_once)
    return fail(
        ErrorCode::kInvalidArgument,
        s.band_text() + ", but one chunk of " + number(s.chunk) + " items and one batch of " +
            number(s.batch) + " / " + number(s.spi) + " items need " + number(at_once) +
            ": inserts and samples could wait for each other for ever; raise error_buffer to " +
            number(std::ceil(at_once * s.spi / 2)));
  return {};
}

Result<ShardLimits> check_queue_plan(const LimiterPlan& plan) {
  ShardLimits limits;
  const char* name = name_of(plan.kind);
  limits.capacity = plan.capacity / plan.shards;
  limits.limiter = {.kind = plan.kind, .size = limits.capacity};
  limits.flush_steps =
      flush_steps(static_cast<double>(plan.capacity), plan.environment_actors, plan.credit);
  const std::int64_t chunk = limits.flush_steps + plan.n_step - 1;
  const std::int64_t batch = divide_up(plan.batch, plan.shards);
  if (limits.capacity >= chunk + batch - 1) return limits;
  return fail(ErrorCode::kInvalidArgument,
              std::string(name) + " of capacity " + std::to_string(plan.capacity) + " / " +
                  std::to_string(plan.shards) + " shards = " + std::to_string(limits.capacity) +
                  " items is below largest chunk + batch - 1 = " + std::to_string(chunk) + " + " +
                  std::to_string(batch) + " - 1 = " + std::to_string(chunk + batch - 1) +
                  ": with " + std::to_string(batch - 1) +
                  " items held, the next chunk would not fit and no batch could be drawn");
}

}  // namespace

double band_items(double error_buffer, double samples_per_insert) {
  if (samples_per_insert == 0) return std::numeric_limits<double>::infinity();
  return 2 * error_buffer / samples_per_insert;
}

std::int64_t flush_steps(double band, std::int64_t environment_actors, std::int64_t credit) {
  const double steps =
      band / (4.0 * static_cast<double>(environment_actors) * static_cast<double>(credit));
  return static_cast<std::int64_t>(std::clamp(std::floor(steps), 1.0, double{kMaxFlushSteps}));
}

Result<ShardLimits> check_limiter(const LimiterPlan& plan) {
  if (auto good = check_ranges(plan); !good) return tl::unexpected(good.error());
  if (plan.kind != LimiterKind::kRatio) return check_queue_plan(plan);
  const double spi = plan.samples_per_insert;
  const double buffer = plan.error_buffer.value_or(0.1 * static_cast<double>(plan.min_size) * spi);

  ShardLimits limits;
  limits.capacity = plan.capacity / plan.shards;
  limits.limiter = {.min_size = plan.min_size, .samples_per_insert = spi, .error_buffer = buffer};
  limits.flush_steps = flush_steps(band_items(buffer, spi), plan.environment_actors, plan.credit);
  // With fewer environment actors than shards some shards may stay empty.
  const std::int64_t filled = std::min(plan.shards, plan.environment_actors);
  if (plan.min_size > filled * limits.capacity)
    return fail(ErrorCode::kInvalidArgument,
                "min_size " + std::to_string(plan.min_size) + " exceeds what " +
                    std::to_string(filled) + " of " + std::to_string(plan.shards) +
                    " shards hold, " + std::to_string(filled) + " x capacity / shards = " +
                    std::to_string(filled * limits.capacity) + ": no sample could ever be drawn");
  if (auto good = check_draw_bound(
          limits.limiter, {.capacity = plan.capacity, .max_times_sampled = plan.max_times_sampled});
      !good)
    return tl::unexpected(good.error());
  if (plan.max_times_sampled > 0 && plan.min_size < plan.batch)
    return fail(ErrorCode::kInvalidArgument,
                "min_size " + std::to_string(plan.min_size) + " is below the batch of " +
                    std::to_string(plan.batch) + ": with max_times_sampled " +
                    std::to_string(plan.max_times_sampled) +
                    " the items could have fewer draws left than a batch wants; raise min_size");
  if (spi == 0) return limits;

  if (auto good = check_band({.spi = spi,
                              .buffer = buffer,
                              .band = band_items(buffer, spi),
                              .actors = static_cast<double>(plan.environment_actors),
                              .batch = static_cast<double>(plan.batch),
                              .prefetch = static_cast<double>(plan.prefetch),
                              .chunk = static_cast<double>(limits.flush_steps + plan.n_step - 1)});
      !good)
    return tl::unexpected(good.error());
  return limits;
}

Result<void> check_draw_bound(const LimiterOptions& limiter, const TableParts& parts) {
  const double spi = limiter.samples_per_insert;
  const auto most = static_cast<double>(parts.max_times_sampled);
  if (parts.max_times_sampled == 0 || spi < most) return {};
  if (spi > most)
    return fail(ErrorCode::kInvalidArgument,
                "samples_per_insert " + number(spi) + " exceeds max_times_sampled " + number(most) +
                    ": items would leave before the ratio is reached, and each "
                    "insert would bring both sides " +
                    number(spi - most) + " samples nearer to waiting for ever");
  if (parts.capacity_bytes > 0)
    return fail(ErrorCode::kInvalidArgument,
                "samples_per_insert equals max_times_sampled " + number(most) +
                    ", so every draw of every item is needed, but capacity_bytes removes items "
                    "before their last one; raise max_times_sampled");
  if (limiter.max_diff() > static_cast<double>(parts.capacity))
    return fail(ErrorCode::kInvalidArgument,
                "samples_per_insert equals max_times_sampled " + number(most) +
                    ", so every draw of every item is needed, but up to samples_per_insert x "
                    "min_size + error_buffer = " +
                    number(spi) + " x " + std::to_string(limiter.min_size) + " + " +
                    number(limiter.error_buffer) + " = " + number(limiter.max_diff()) +
                    " items may wait for theirs and capacity " + std::to_string(parts.capacity) +
                    " would remove some");
  return {};
}

Result<void> check_queue(const LimiterOptions& limiter, const TableParts& parts) {
  const auto refuse = [](const std::string& what) {
    return fail(ErrorCode::kInvalidArgument, what);
  };
  const std::string size = std::to_string(limiter.size), name = name_of(limiter.kind);
  if (limiter.is_ratio() || limiter.is_allowance()) {
    if (limiter.size == 0) return {};
    return refuse("limiter size " + size + " is for queues and stacks only");
  }
  if (limiter.size < 1) return refuse(name + " of " + size + " items: at least 1 is needed");
  if (limiter.size > parts.capacity)
    return refuse(name + " of " + size + " items exceeds capacity " +
                  std::to_string(parts.capacity) + ": items would be removed undrawn");
  if (parts.capacity_bytes > 0)
    return refuse(name + " cannot have capacity_bytes " + std::to_string(parts.capacity_bytes) +
                  ": items would be removed undrawn; bound it by its size");
  if (parts.max_times_sampled != 1)
    return refuse(name + " gives each item once, but max_times_sampled is " +
                  std::to_string(parts.max_times_sampled) + "; it must be 1");
  const std::string_view needed = limiter.kind == LimiterKind::kQueue ? "fifo" : "lifo";
  if (parts.selector != needed)
    return refuse(name + " draws by selector '" + std::string(needed) + "', not '" +
                  std::string(parts.selector) + "'");
  if (limiter.samples_per_insert != 0 || limiter.error_buffer != 0)
    return refuse(name + " has no ratio, but samples_per_insert is " +
                  number(limiter.samples_per_insert) + " and error_buffer " +
                  number(limiter.error_buffer) + "; both must be 0");
  if (limiter.min_size != 1)
    return refuse(name + " gives items as soon as it has enough for a sample, but min_size is " +
                  std::to_string(limiter.min_size) + "; it must be 1");
  return {};
}

}  // namespace troupe::replay
