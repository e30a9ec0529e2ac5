// Locking, waiting and waking. What is held is in item_store.cpp, the copying in gather.cpp.
#include "replay/table.hpp"

#include <cmath>
#include <utility>

#include "replay/checkpoint.hpp"
#include "replay/codec.hpp"
#include "replay/gather.hpp"
#include "replay/table_check.hpp"

namespace troupe::replay {
namespace {

constexpr const char* kClosed = "the table is closed";

InsertOutcome refused(Error error) { return {InsertOutcome::Kind::kRefused, 0, std::move(error)}; }

InsertOutcome would_block(std::string reason) {
  return {InsertOutcome::Kind::kWouldBlock, 0, {ErrorCode::kUnavailable, std::move(reason)}};
}

}  // namespace

void Table::BlockedClock::start(std::uint64_t n) {
  if (wanted == 0) since = Clock::now();
  wanted = n;
}

void Table::BlockedClock::stop(std::uint64_t& total_ns) {
  if (wanted == 0) return;
  total_ns += static_cast<std::uint64_t>(Nanoseconds(Clock::now() - since).count());
  wanted = 0;
}

Result<std::unique_ptr<Table>> Table::create(const TableOptions& options, Signature signature) {
  if (auto good = check_table_options(options, signature); !good)
    return tl::unexpected(good.error());
  std::shared_ptr<DiskTier> disk;
  TableOptions used = options;
  if (options.disk.used()) {
    // Best fit leaves gaps between chunks of different sizes.
    const auto bytes = static_cast<std::uint64_t>(options.disk.bytes);
    auto made = DiskTier::create(options.disk.folder, bytes + bytes / 16);
    if (!made) return tl::unexpected(made.error());
    disk = *std::move(made);
    used.capacity_bytes = options.payload_bound();
  }
  return std::unique_ptr<Table>(new Table(used, std::move(signature), std::move(disk)));
}

Table::Table(const TableOptions& options, Signature signature, std::shared_ptr<DiskTier> disk)
    : options_(options),
      signature_(std::move(signature)),
      layout_(ChunkLayout::of(signature_, options.compression)),
      disk_(std::move(disk)),
      writer_(std::make_shared<CheckpointWriter>()),
      batch_columns_(batch_columns_of(signature_, options.shape())),
      store_(std::make_unique<ItemStore>(options, signature_.lead())) {}

std::optional<InsertOutcome> Table::check(const Chunk& chunk, std::optional<double> priority) {
  if (priority && !(std::isfinite(*priority) && *priority >= 0)) {
    const std::lock_guard lock(mutex_);
    ++store_->counters().invalid_priorities;
    return refused({ErrorCode::kInvalidArgument, describe(chunk.header) + " comes with priority " +
                                                     std::to_string(*priority) +
                                                     "; a finite one >= 0 is needed"});
  }
  if (chunk.bytes() > PackedChunk::kMostBytes) {
    const std::lock_guard lock(mutex_);
    ++store_->counters().malformed_chunks;
    return refused({ErrorCode::kInvalidArgument,
                    describe(chunk.header) + " has " + std::to_string(chunk.bytes()) +
                        " bytes; a chunk may have " + std::to_string(PackedChunk::kMostBytes)});
  }
  const DecodeLimits limits{.max_steps = options_.max_chunk_steps};
  const auto shape = check_shape(chunk, signature_, limits);
  const auto finite = shape ? check_finite(chunk, signature_) : shape;
  if (finite) return std::nullopt;
  const std::lock_guard lock(mutex_);
  StoreCounters& counters = store_->counters();
  ++(shape ? counters.not_finite_chunks : counters.malformed_chunks);
  return refused(finite.error());
}

std::optional<InsertOutcome> Table::pack(const Chunk& chunk, PackedPtr& packed) {
  packed = PackedChunk::pack(chunk, layout_, disk_);
  const auto capacity = static_cast<std::uint64_t>(options_.capacity_bytes);
  if (options_.capacity_bytes == 0 || packed->bytes() <= capacity) return std::nullopt;
  const std::lock_guard lock(mutex_);
  ++store_->counters().malformed_chunks;
  return refused({ErrorCode::kInvalidArgument,
                  describe(chunk.header) + " has " + std::to_string(packed->bytes()) +
                      " bytes, more than capacity_bytes " + std::to_string(capacity)});
}

std::optional<InsertOutcome> Table::judge_locked(const ChunkHeader& header, bool prefilled) {
  if (closed_) return refused({ErrorCode::kUnavailable, kClosed});
  switch (store_->builder().judge(header)) {
    case ItemBuilder::Verdict::kDuplicate:
      ++store_->counters().duplicate_chunks;
      return InsertOutcome{InsertOutcome::Kind::kDuplicate, 0, {}};
    case ItemBuilder::Verdict::kStale:
      ++store_->counters().stale_chunks;
      return refused({ErrorCode::kInvalidArgument,
                      describe(header) + " comes after a newer incarnation of its worker began"});
    case ItemBuilder::Verdict::kNew:
      break;
  }
  const std::uint64_t expected = store_->builder().forecast(header);
  const std::string never = prefilled ? std::string() : store_->limiter().insert_refusal(expected);
  if (!never.empty()) {
    ++store_->counters().malformed_chunks;
    return refused({ErrorCode::kInvalidArgument, describe(header) + " is refused: " + never});
  }
  if (!prefilled && !store_->limiter().can_insert(expected)) {
    insert_blocked_.start(expected);
    return std::nullopt;
  }
  return InsertOutcome{};
}

std::optional<InsertOutcome> Table::insert_locked(const ChunkHeader& header, const PackedPtr& chunk,
                                                  std::optional<double> priority, Garbage& garbage,
                                                  bool prefilled) {
  auto outcome = judge_locked(header, prefilled);
  if (!outcome || outcome->kind != InsertOutcome::Kind::kAccepted) return outcome;
  outcome->items = store_->insert(chunk, priority, garbage, prefilled);
  settle_clocks();
  if (outcome->items > 0 && store_->can_sample(1)) may_sample_.notify_all();
  return outcome;
}

// The limiter moved: whoever it held back may be free now.
void Table::settle_clocks() {
  StoreCounters& counters = store_->counters();
  if (store_->limiter().can_insert(insert_blocked_.wanted))
    insert_blocked_.stop(counters.insert_blocked_ns);
  if (store_->can_sample(sample_blocked_.wanted)) sample_blocked_.stop(counters.sample_blocked_ns);
}

InsertOutcome Table::try_insert(const ChunkPtr& chunk, std::optional<double> priority) {
  return insert(chunk, Nanoseconds::zero(), priority);
}

InsertOutcome Table::insert(const ChunkPtr& chunk, Nanoseconds timeout,
                            std::optional<double> priority) {
  if (auto bad = check(*chunk, priority)) return *std::move(bad);
  const bool waits = timeout > Nanoseconds::zero();
  if (!waits) {
    // What is turned away, again and again while the limiter holds it back, is not packed first.
    const std::lock_guard lock(mutex_);
    const auto outcome = judge_locked(chunk->header, false);
    if (!outcome) return would_block(insert_reason_locked(chunk->header));
    if (outcome->kind != InsertOutcome::Kind::kAccepted) return *outcome;
  }
  PackedPtr packed;
  if (auto bad = pack(*chunk, packed)) return *std::move(bad);
  Garbage garbage;  // freed after the lock
  std::unique_lock lock(mutex_);
  auto outcome = insert_locked(chunk->header, packed, priority, garbage);
  if (!outcome && waits)
    may_insert_.wait_for(lock, timeout, [&] {
      outcome = insert_locked(chunk->header, packed, priority, garbage);
      return outcome.has_value();
    });
  return outcome ? *std::move(outcome) : would_block(insert_reason_locked(chunk->header));
}

InsertOutcome Table::prefill(const ChunkPtr& chunk) {
  if (auto bad = check(*chunk, {})) return *std::move(bad);
  PackedPtr packed;
  if (auto bad = pack(*chunk, packed)) return *std::move(bad);
  Garbage garbage;
  const std::lock_guard lock(mutex_);
  InsertOutcome outcome = *insert_locked(chunk->header, packed, {}, garbage, true);
  if (outcome.kind == InsertOutcome::Kind::kDuplicate)
    return refused({ErrorCode::kInvalidArgument, describe(chunk->header) + " is there already"});
  return outcome;
}

std::string Table::insert_reason_locked(const ChunkHeader& header) const {
  return store_->limiter().insert_block_reason(store_->builder().forecast(header));
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
