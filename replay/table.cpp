// Sampling, locking and waking. Inserting is in table_insert.cpp and table_group.cpp, what is held
// in item_store.cpp, the copying in gather.cpp.
#include "replay/table.hpp"

#include <cmath>
#include <utility>

#include "replay/checkpoint.hpp"
#include "replay/gather.hpp"
#include "replay/table_check.hpp"
#include "replay/table_group.hpp"

namespace troupe::replay {
void Table::BlockedClock::start(std::uint64_t n) {
  if (wanted == 0) since = Clock::now();
  wanted = n;
}

void Table::BlockedClock::stop(std::uint64_t& total_ns) {
  if (wanted == 0) return;
  total_ns += static_cast<std::uint64_t>(Nanoseconds(Clock::now() - since).count());
  wanted = 0;
}

Result<std::unique_ptr<Table>> Table::create(const TableOptions& options, Signature signature,
                                             std::shared_ptr<ChunkStorage> storage) {
  if (auto good = check_table_options(options, signature); !good)
    return tl::unexpected(good.error());
  if (storage && options.disk.used())
    return fail(ErrorCode::kInvalidArgument,
                "replay table: disk is given, but payloads go where the shared storage has them");
  if (!storage) {
    auto made = ChunkStorage::create(options.disk);
    if (!made) return tl::unexpected(made.error());
    storage = *std::move(made);
  }
  TableOptions used = options;
  if (options.disk.used()) used.capacity_bytes = options.payload_bound();
  return std::unique_ptr<Table>(new Table(used, std::move(signature), std::move(storage)));
}

Table::Table(const TableOptions& options, Signature signature,
             std::shared_ptr<ChunkStorage> storage)
    : options_(options),
      signature_(std::move(signature)),
      layout_(ChunkLayout::of(signature_, options.compression)),
      storage_(std::move(storage)),
      batch_columns_(batch_columns_of(signature_, options.shape())),
      store_(std::make_unique<ItemStore>(options, signature_.lead(), storage_)) {}

InsertOutcome Table::try_insert(const ChunkPtr& chunk, std::optional<double> priority) {
  return insert(chunk, Nanoseconds::zero(), priority);
}

InsertOutcome Table::insert(const ChunkPtr& chunk, Nanoseconds timeout,
                            std::optional<double> priority) {
  Table* const self = this;
  return TableGroup::insert({&self, 1}, chunk, timeout, priority);
}

std::string Table::sample_reason_locked(std::size_t n) const {
  return closed_ ? kClosed : store_->sample_block_reason(n);
}

std::optional<Result<SampledItems>> Table::sample_locked(std::size_t n, Garbage& garbage) {
  if (closed_) return Result<SampledItems>(fail(ErrorCode::kUnavailable, kClosed));
  if (auto possible = check_sample_size(options_, n); !possible)
    return Result<SampledItems>(tl::unexpected(possible.error()));
  if (!store_->can_sample(n)) {
    sample_blocked_.start(n);
    return std::nullopt;
  }
  SampledItems sampled;
  store_->draw(n, sampled, garbage);
  settle_clocks();
  may_insert_.notify_all();
  return Result<SampledItems>(std::move(sampled));
}

Result<SampledItems> Table::try_sample(std::size_t n) {
  Garbage garbage;  // freed after the lock
  const std::lock_guard lock(mutex_);
  if (auto sampled = sample_locked(n, garbage)) return *std::move(sampled);
  return fail(ErrorCode::kUnavailable, sample_reason_locked(n));
}

Result<SampledItems> Table::sample(std::size_t n, Nanoseconds timeout) {
  Garbage garbage;  // freed after the lock
  std::unique_lock lock(mutex_);
  std::optional<Result<SampledItems>> sampled = sample_locked(n, garbage);
  if (!sampled)
    may_sample_.wait_for(lock, timeout, [&] {
      sampled = sample_locked(n, garbage);
      return sampled.has_value();
    });
  if (sampled) return *std::move(sampled);
  return fail(ErrorCode::kTimeout, sample_reason_locked(n));
}

Result<void> Table::gather(const SampledItems& items, Batch& batch) const {
  if (batch.columns() != batch_columns_)
    return fail(ErrorCode::kInvalidArgument, "batch does not have this table's batch_columns()");
  const ItemShape shape = options_.shape();
  return shape.is_span() ? gather_spans(items, signature_, shape, options_.discount, batch)
                         : replay::gather(items, signature_, batch);
}

std::size_t Table::update_priorities(std::span<const ItemKey> keys,
                                     std::span<const double> values) {
  std::size_t current = 0;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < keys.size() && i < values.size(); ++i)
    if (std::isfinite(values[i]) && values[i] >= 0)
      current += store_->update_priority(keys[i], values[i]) ? 1 : 0;
    else
      ++store_->counters().invalid_priorities;
  return current;
}

void Table::allow_inserts(std::uint64_t items) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t inserted = store_->counters().inserted_items;
  store_->allow(store_->limiter().inserts() + (items > inserted ? items - inserted : 0));
  settle_clocks();
  may_insert_.notify_all();
}

void Table::wait_for_inserts(std::uint64_t inserted, Nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  may_sample_.wait_for(lock, timeout,
                       [&] { return closed_ || store_->counters().inserted_items > inserted; });
}

void Table::abandon(std::uint32_t worker) {
  Garbage garbage;
  const std::lock_guard lock(mutex_);
  store_->abandon(worker, garbage);
}

void Table::count_lost(std::uint64_t steps, std::uint64_t items) {
  const std::lock_guard lock(mutex_);
  StoreCounters& counters = store_->counters();
  counters.inserted_steps += steps;
  counters.lost_steps += steps;
  counters.inserted_items += items;
  counters.lost_items += items;
}

void Table::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  insert_blocked_.stop(store_->counters().insert_blocked_ns);
  sample_blocked_.stop(store_->counters().sample_blocked_ns);
  may_insert_.notify_all();
  may_sample_.notify_all();
}

TableStatistics Table::statistics() const {
  const auto now = Clock::now();
  const auto running_ms = [&](const BlockedClock& clock) -> std::uint64_t {
    if (clock.wanted == 0 || now < clock.since) return 0;
    return static_cast<std::uint64_t>(Nanoseconds(now - clock.since).count()) / 1000000;
  };
  TableStatistics statistics;
  const std::lock_guard lock(mutex_);
  store_->fill(statistics);
  statistics.waiting_items = insert_blocked_.wanted;
  statistics.insert_blocked_ms += running_ms(insert_blocked_);
  statistics.sample_blocked_ms += running_ms(sample_blocked_);
  return statistics;
}

double Table::spi() const {
  const std::lock_guard lock(mutex_);
  return store_->limiter().measured_spi();
}

std::string Table::insert_block_reason() const {
  const std::lock_guard lock(mutex_);
  return closed_ ? kClosed : store_->limiter().insert_block_reason(1);
}

std::string Table::sample_block_reason(std::size_t n) const {
  const std::lock_guard lock(mutex_);
  return sample_reason_locked(n);
}

}  // namespace troupe::replay
