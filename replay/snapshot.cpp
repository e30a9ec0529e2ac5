// Taking a table's content out as a snapshot, and putting one in its place.
#include <cstdio>
#include <string>
#include <utility>

#include "replay/table.hpp"

namespace troupe::replay {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

// One option of which the checkpoint and the table have different values.
std::string difference(const char* name, double saved, double now) {
  return std::string(name) + " was " + number(saved) + " in the checkpoint, is now " + number(now);
}

const char* name_of(WeightScale scale) { return scale == WeightScale::kTable ? "table" : "batch"; }

std::string describe(const ItemShape& shape) {
  const std::string length = std::to_string(shape.length);
  switch (shape.kind) {
    case ItemShape::Kind::kNStep:
      return "items of n_step " + length;
    case ItemShape::Kind::kEpisode:
      return "episodes of up to " + length + " steps";
    case ItemShape::Kind::kSequence:
      break;
  }
  return "sequences of " + length + " steps (period " + std::to_string(shape.period) +
         ", burn-in " + std::to_string(shape.burn_in) + ", " +
         (shape.across_episodes                 ? "across episodes"
          : shape.tail == ItemShape::Tail::kPad ? "padded tail"
                                                : "dropped tail") +
         ")";
}

}  // namespace

TableSnapshot Table::snapshot() {
  TableSnapshot snapshot{.options = options_, .signature = signature_, .cut = {}};
  snapshot.writer = storage_->checkpoint_writer();
  const std::lock_guard lock(mutex_);
  snapshot.cut = store_->cut();
  store_->fill(snapshot.statistics);
  return snapshot;
}

// Of what a checkpoint keeps. It has neither compression nor disk: chunks stay packed as they are,
// and go where this table keeps them.
Result<std::vector<std::string>> Table::compare(const TableSnapshot& snapshot) const {
  const TableOptions& saved = snapshot.options;
  if (snapshot.signature != signature_)
    return fail(ErrorCode::kInvalidArgument, "checkpoint holds steps of another environment");
  if (saved.shape() != options_.shape())
    return fail(ErrorCode::kInvalidArgument, "checkpoint holds " + describe(saved.shape()) +
                                                 "; this table builds " +
                                                 describe(options_.shape()));
  if (saved.discount != options_.discount)
    return fail(ErrorCode::kInvalidArgument, "checkpoint holds items with discount " +
                                                 number(saved.discount) + "; this table's is " +
                                                 number(options_.discount));
  if (saved.selector != options_.selector || saved.remover != options_.remover)
    return fail(ErrorCode::kInvalidArgument, "checkpoint was drawn by selector '" + saved.selector +
                                                 "' and removed by '" + saved.remover +
                                                 "'; this table uses '" + options_.selector +
                                                 "' and '" + options_.remover + "'");
  if (options_.selector == kPrioritised && saved.priority_exponent != options_.priority_exponent)
    return fail(ErrorCode::kInvalidArgument,
                "checkpoint holds priorities to the power of priority_exponent " +
                    number(saved.priority_exponent) + "; this table's is " +
                    number(options_.priority_exponent));
  std::vector<std::string> notes;
  const auto note = [&](const char* name, double before, double now) {
    if (before != now) notes.push_back(difference(name, before, now));
  };
  note("capacity", static_cast<double>(saved.capacity), static_cast<double>(options_.capacity));
  note("min_size", static_cast<double>(saved.limiter.min_size),
       static_cast<double>(options_.limiter.min_size));
  note("samples_per_insert", saved.limiter.samples_per_insert, options_.limiter.samples_per_insert);
  note("error_buffer", saved.limiter.error_buffer, options_.limiter.error_buffer);
  note("max_times_sampled", static_cast<double>(saved.max_times_sampled),
       static_cast<double>(options_.max_times_sampled));
  note("capacity_bytes", static_cast<double>(saved.capacity_bytes),
       static_cast<double>(options_.capacity_bytes));
  if (saved.limiter.kind != options_.limiter.kind)
    notes.push_back(std::string("limiter was a ") + name_of(saved.limiter.kind) +
                    " in the checkpoint, is now a " + name_of(options_.limiter.kind));
  note("limiter size", static_cast<double>(saved.limiter.size),
       static_cast<double>(options_.limiter.size));
  note("max_chunk_steps", static_cast<double>(saved.max_chunk_steps),
       static_cast<double>(options_.max_chunk_steps));
  if (options_.selector == kPrioritised) {
    note("importance_exponent", saved.importance_exponent, options_.importance_exponent);
    if (saved.weight_scale != options_.weight_scale)
      notes.push_back(std::string("weight_scale was ") + name_of(saved.weight_scale) +
                      " in the checkpoint, is now " + name_of(options_.weight_scale));
  }
  return notes;
}

Result<std::vector<std::string>> Table::adopt(TableSnapshot snapshot) {
  auto notes = compare(snapshot);
  if (!notes) return notes;
  auto store = std::make_unique<ItemStore>(options_, signature_.lead(), storage_);
  bool limits_changed = false;
  if (auto good = store->adopt(std::move(snapshot.cut), limits_changed); !good)
    return tl::unexpected(good.error());
  Garbage garbage;
  if (const std::uint64_t removed = store->enforce_limits(garbage); removed > 0)
    notes->push_back(std::to_string(removed) + " items over this table's limits were removed");
  if (limits_changed)
    notes->push_back("the limiter goes on with its new options: " + store->limiter().state_text());
  const std::lock_guard lock(mutex_);
  store_.swap(store);  // the old content is freed after the lock
  insert_blocked_ = sample_blocked_ = {};
  may_insert_.notify_all();
  may_sample_.notify_all();
  return notes;
}

}  // namespace troupe::replay
