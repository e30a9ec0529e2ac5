// The checks of table_check.hpp.
#include "replay/table_check.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "replay/limiter_check.hpp"
#include "replay/selector.hpp"
#include "replay/store_cut.hpp"

namespace troupe::replay {
namespace {

tl::unexpected<Error> invalid(const std::string& what) {
  return fail(ErrorCode::kInvalidArgument, "replay table: " + what);
}

Result<void> check_selector(const std::string& name) {
  const auto names = selector_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  std::string known;
  for (const std::string_view one : names) known += (known.empty() ? "" : ", ") + std::string(one);
  return invalid("there is no selector '" + name + "'; known are " + known);
}

Result<void> check_priorities(const TableOptions& options) {
  if (!(options.priority_exponent >= 0 && options.priority_exponent <= 8))
    return invalid("priority_exponent is not in 0..8");
  if (!(options.importance_exponent >= 0 && options.importance_exponent <= 1))
    return invalid("importance_exponent is not in 0..1");
  return {};
}

Result<void> check_bytes(const TableOptions& options, const Signature& signature) {
  if (options.capacity_bytes < 0)
    return invalid("capacity_bytes " + std::to_string(options.capacity_bytes) +
                   " is below 0; 0 is for no bound");
  const std::int64_t capacity = options.payload_bound();
  std::uint64_t step = sizeof(float);  // the reward; how small packed columns get is not known
  for (const auto* columns : {&signature.observation, &signature.step})
    for (const Column& column : *columns)
      if (compression_for(column, options.compression) == Compression::kNone)
        step += column.bytes();
  const double needed = static_cast<double>(step) * static_cast<double>(options.limiter.min_size);
  if (capacity == 0 || needed <= static_cast<double>(capacity)) return {};
  return invalid("capacity_bytes " + std::to_string(capacity) + " can never hold min_size " +
                 std::to_string(options.limiter.min_size) + " x " + std::to_string(step) +
                 " bytes a step");
}

Result<void> check_columns(const TableOptions& options, const Signature& signature) {
  const auto known = [&](const std::string& name) {
    for (const auto* columns : {&signature.observation, &signature.step})
      for (const Column& column : *columns)
        if (column.name == name) return true;
    return false;
  };
  for (const auto& [name, compression] : options.compression)
    if (!known(name)) return invalid("compression names a column '" + name + "' that is not there");
  if (signature.frame_stack.size() > signature.observation.size())
    return invalid("frame_stack has more entries than there are observation columns");
  for (const std::uint32_t rows : signature.frame_stack)
    if (rows < 1 || rows > ItemRecord::kMaxLead + 1)
      return invalid("frame_stack " + std::to_string(rows) + " is not in 1.." +
                     std::to_string(ItemRecord::kMaxLead + 1));
  if (options.max_chunk_steps < 1 || options.max_chunk_steps > ItemRecord::kMaxRow)
    return invalid("max_chunk_steps " + std::to_string(options.max_chunk_steps) + " is not in 1.." +
                   std::to_string(ItemRecord::kMaxRow));
  if (options.disk.used() && options.disk.bytes < 1)
    return invalid("disk.bytes " + std::to_string(options.disk.bytes) +
                   " must be at least 1 where disk.folder is given");
  return {};
}

}  // namespace

Result<void> check_table_options(const TableOptions& options, const Signature& signature) {
  const LimiterOptions& limiter = options.limiter;
  if (options.capacity < 1 || options.capacity > std::int64_t{0xfffffffe})
    return invalid("capacity " + std::to_string(options.capacity) + " is not in 1..4294967294");
  if (limiter.min_size < 1 || limiter.min_size > options.capacity)
    return invalid("min_size " + std::to_string(limiter.min_size) + " is not in 1..capacity (" +
                   std::to_string(options.capacity) + ")");
  if (!(limiter.samples_per_insert >= 0) || !std::isfinite(limiter.samples_per_insert))
    return invalid("samples_per_insert must be a number >= 0");
  if (!std::isfinite(limiter.error_buffer) ||
      (limiter.samples_per_insert > 0 && !(limiter.error_buffer > 0)))
    return invalid("error_buffer must be > 0");
  if (options.n_step < 1 || options.n_step > 65535)
    return invalid("n_step " + std::to_string(options.n_step) + " is not in 1..65535");
  if (auto good = check_item_shape(options.shape()); !good) return invalid(good.error().message);
  if (!(options.discount >= 0 && options.discount <= 1)) return invalid("discount is not in 0..1");
  for (const std::string& name : {options.selector, options.remover})
    if (auto good = check_selector(name); !good) return good;
  if (options.max_times_sampled < 0 || options.max_times_sampled > std::int64_t{0xffffffff})
    return invalid("max_times_sampled " + std::to_string(options.max_times_sampled) +
                   " is not in 0..4294967295");
  if (auto good = check_bytes(options, signature); !good) return good;
  if (auto good = check_columns(options, signature); !good) return good;
  const TableParts parts{options.capacity, options.payload_bound(), options.max_times_sampled,
                         options.selector};
  for (const auto& checked : {check_queue(limiter, parts), check_draw_bound(limiter, parts)})
    if (!checked) return invalid(checked.error().message);
  return check_priorities(options);
}

Result<void> check_sample_size(const TableOptions& options, std::size_t n) {
  if (options.max_times_sampled == 0) return {};
  const double most =
      static_cast<double>(options.capacity) * static_cast<double>(options.max_times_sampled);
  if (static_cast<double>(n) <= most) return {};
  return fail(ErrorCode::kInvalidArgument,
              "a sample of " + std::to_string(n) + " can never be drawn: capacity " +
                  std::to_string(options.capacity) + " x max_times_sampled " +
                  std::to_string(options.max_times_sampled) + " draws are fewer");
}

}  // namespace troupe::replay
