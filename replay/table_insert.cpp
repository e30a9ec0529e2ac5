// What one table says of a chunk, and taking it in. Who locks and waits is in table_group.cpp.
#include <cmath>
#include <utility>

#include "replay/codec.hpp"
#include "replay/table.hpp"

namespace troupe::replay {
namespace {

InsertOutcome refused(Error error) { return {InsertOutcome::Kind::kRefused, 0, std::move(error)}; }

}  // namespace

std::optional<InsertOutcome> Table::check(const Chunk& chunk, std::optional<double> priority,
                                          bool columns) {
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
  const auto finite = shape && columns ? check_finite(chunk, signature_) : shape;
  if (finite) return std::nullopt;
  const std::lock_guard lock(mutex_);
  StoreCounters& counters = store_->counters();
  ++(shape ? counters.not_finite_chunks : counters.malformed_chunks);
  return refused(finite.error());
}

std::optional<InsertOutcome> Table::check_room(const ChunkHeader& header,
                                               const PackedChunk& packed) {
  const auto capacity = static_cast<std::uint64_t>(options_.capacity_bytes);
  if (options_.capacity_bytes == 0 || packed.bytes() <= capacity) return std::nullopt;
  const std::lock_guard lock(mutex_);
  ++store_->counters().malformed_chunks;
  return refused({ErrorCode::kInvalidArgument,
                  describe(header) + " has " + std::to_string(packed.bytes()) +
                      " bytes, more than capacity_bytes " + std::to_string(capacity)});
}

Table::Verdict Table::judge_locked(const ChunkHeader& header, bool prefilled) const {
  switch (store_->builder().judge(header)) {
    case ItemBuilder::Verdict::kDuplicate:
      return {Verdict::Kind::kDuplicate, {}};
    case ItemBuilder::Verdict::kStale:
      return {Verdict::Kind::kStale, {}};
    case ItemBuilder::Verdict::kNew:
      break;
  }
  if (prefilled) return {Verdict::Kind::kAccepted, {}};
  const RateLimiter& limiter = store_->limiter();
  const std::uint64_t expected = store_->builder().forecast(header);
  if (std::string never = limiter.insert_refusal(expected); !never.empty())
    return {Verdict::Kind::kNeverFits, std::move(never)};
  return {limiter.can_insert(expected) ? Verdict::Kind::kAccepted : Verdict::Kind::kWouldBlock, {}};
}

InsertOutcome Table::refuse_locked(const ChunkHeader& header, const Verdict& verdict) {
  StoreCounters& counters = store_->counters();
  if (verdict.kind == Verdict::Kind::kStale) {
    ++counters.stale_chunks;
    return refused({ErrorCode::kInvalidArgument,
                    describe(header) + " comes after a newer incarnation of its worker began"});
  }
  ++counters.malformed_chunks;
  return refused({ErrorCode::kInvalidArgument, describe(header) + " is refused: " + verdict.why});
}

std::uint64_t Table::insert_locked(const PackedPtr& chunk, std::optional<double> priority,
                                   Garbage& garbage, bool prefilled) {
  const std::uint64_t items = store_->insert(chunk, priority, garbage, prefilled);
  settle_clocks();
  if (items > 0 && store_->can_sample(1)) may_sample_.notify_all();
  return items;
}

// The limiter moved: whoever it held back may be free now.
void Table::settle_clocks() {
  StoreCounters& counters = store_->counters();
  if (store_->limiter().can_insert(insert_blocked_.wanted))
    insert_blocked_.stop(counters.insert_blocked_ns);
  if (store_->can_sample(sample_blocked_.wanted)) sample_blocked_.stop(counters.sample_blocked_ns);
}

InsertOutcome Table::prefill(const ChunkPtr& chunk) {
  if (auto bad = check(*chunk, {})) return *std::move(bad);
  const PackedPtr packed = PackedChunk::pack(*chunk, layout_, storage_.get());
  if (auto bad = check_room(chunk->header, *packed)) return *std::move(bad);
  Garbage garbage;
  const std::lock_guard lock(mutex_);
  if (closed_) return refused({ErrorCode::kUnavailable, kClosed});
  const Verdict verdict = judge_locked(chunk->header, true);
  if (verdict.kind == Verdict::Kind::kDuplicate) {
    ++store_->counters().duplicate_chunks;
    return refused({ErrorCode::kInvalidArgument, describe(chunk->header) + " is there already"});
  }
  if (verdict.kind != Verdict::Kind::kAccepted) return refuse_locked(chunk->header, verdict);
  return {InsertOutcome::Kind::kAccepted, insert_locked(packed, {}, garbage, true), {}};
}

}  // namespace troupe::replay
