// Locking, waiting and taking in.
#include "replay/table_group.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

namespace troupe::replay {

// Of all tables at once; never two in the other order.
class TableGroup::Locks {
 public:
  explicit Locks(std::span<Table* const> tables) : tables_(tables) {
    for (Table* table : tables_) table->mutex_.lock();
  }
  ~Locks() { unlock_but(nullptr); }
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  void unlock_but(const Table* kept) {
    for (Table* table : tables_)
      if (table != kept) table->mutex_.unlock();
    tables_ = {};
  }

 private:
  std::span<Table* const> tables_;
};

struct TableGroup::Decision {
  std::optional<InsertOutcome> outcome;  // refused, or there already
  Table* blocked = nullptr;              // its limiter holds the chunk back
  bool goes_in() const { return !outcome && blocked == nullptr; }
};

Result<TableGroup> TableGroup::of(std::vector<Table*> tables) {
  const auto invalid = [](const char* what) {
    return fail(ErrorCode::kInvalidArgument, std::string("tables that are fed together ") + what);
  };
  if (tables.empty()) return invalid("are none");
  std::sort(tables.begin(), tables.end(), std::less<>());
  if (std::adjacent_find(tables.begin(), tables.end()) != tables.end())
    return invalid("name one of them twice");
  for (const Table* table : tables) {
    const Signature &first = tables.front()->signature(), &other = table->signature();
    if (other.observation != first.observation || other.step != first.step ||
        other.spec_hash != first.spec_hash)
      return invalid("have different columns");
    if (&table->layout_ != &tables.front()->layout_) return invalid("pack columns differently");
    if (table->storage_ != tables.front()->storage_) return invalid("do not share one storage");
  }
  return TableGroup(std::move(tables));
}

InsertOutcome TableGroup::try_insert(const ChunkPtr& chunk, std::optional<double> priority) const {
  return insert(tables_, chunk, Table::Nanoseconds::zero(), priority);
}

InsertOutcome TableGroup::insert(const ChunkPtr& chunk, Table::Nanoseconds timeout,
                                 std::optional<double> priority) const {
  return insert(tables_, chunk, timeout, priority);
}

// Expects the locks; counts what it refuses.
TableGroup::Decision TableGroup::decide(std::span<Table* const> tables, const ChunkHeader& header) {
  using Kind = Table::Verdict::Kind;
  Decision decision;
  bool all_have_it = true;
  for (Table* table : tables) {
    if (table->closed_)
      return {InsertOutcome{
                  InsertOutcome::Kind::kRefused, 0, {ErrorCode::kUnavailable, Table::kClosed}},
              nullptr};
    const Table::Verdict verdict = table->judge_locked(header, false);
    if (verdict.kind == Kind::kStale || verdict.kind == Kind::kNeverFits)
      return {table->refuse_locked(header, verdict), nullptr};
    if (verdict.kind == Kind::kWouldBlock && decision.blocked == nullptr) decision.blocked = table;
    all_have_it = all_have_it && verdict.kind == Kind::kDuplicate;
  }
  if (all_have_it) {
    for (Table* table : tables) ++table->store_->counters().duplicate_chunks;
    decision.outcome = InsertOutcome{InsertOutcome::Kind::kDuplicate, 0, {}};
  }
  for (Table* table : tables)
    if (decision.blocked != nullptr && table->judge_locked(header, false).kind == Kind::kWouldBlock)
      table->insert_blocked_.start(table->store_->builder().forecast(header));
  return decision;
}

InsertOutcome TableGroup::commit(std::span<Table* const> tables, const PackedPtr& chunk,
                                 const ChunkHeader& header, std::optional<double> priority,
                                 Table::Garbage& garbage) {
  InsertOutcome outcome;
  for (Table* table : tables)
    if (table->store_->builder().judge(header) == ItemBuilder::Verdict::kNew)
      outcome.items += table->insert_locked(chunk, priority, garbage, false);
    else
      ++table->store_->counters().duplicate_chunks;
  return outcome;
}

InsertOutcome TableGroup::insert(std::span<Table* const> tables, const ChunkPtr& chunk,
                                 Table::Nanoseconds timeout, std::optional<double> priority) {
  const ChunkHeader& header = chunk->header;
  const auto would_block = [&](const Table& by) {
    const std::uint64_t items = by.store_->builder().forecast(header);
    return InsertOutcome{
        InsertOutcome::Kind::kWouldBlock,
        0,
        {ErrorCode::kUnavailable, by.store_->limiter().insert_block_reason(items)}};
  };
  for (Table* table : tables)
    if (auto bad = table->check(*chunk, priority, table == tables.front())) return *std::move(bad);
  const bool waits = timeout > Table::Nanoseconds::zero();
  if (!waits) {
    // What is turned away, again and again while a limiter holds it back, is not packed first.
    const Locks locks(tables);
    Decision decision = decide(tables, header);
    if (decision.outcome) return *std::move(decision.outcome);
    if (decision.blocked != nullptr) return would_block(*decision.blocked);
  }
  const PackedPtr packed =
      PackedChunk::pack(*chunk, tables.front()->layout_, tables.front()->storage_.get());
  for (Table* table : tables)
    if (auto bad = table->check_room(header, *packed)) return *std::move(bad);
  const auto deadline = Table::Clock::now() + timeout;
  Table::Garbage garbage;  // freed after the locks
  for (bool late = !waits;;) {
    Locks locks(tables);
    Decision decision = decide(tables, header);
    if (decision.outcome) return *std::move(decision.outcome);
    if (decision.goes_in()) return commit(tables, packed, header, priority, garbage);
    if (late) return would_block(*decision.blocked);
    // Waits at the table that holds it back; the others work on.
    Table& by = *decision.blocked;
    locks.unlock_but(&by);
    std::unique_lock lock(by.mutex_, std::adopt_lock);
    late = !by.may_insert_.wait_until(lock, deadline, [&] {
      return by.closed_ || by.judge_locked(header, false).kind != Table::Verdict::Kind::kWouldBlock;
    });
  }
}

std::size_t share_chunks(TableSnapshot& snapshot, const TableSnapshot& other) {
  using Name = std::pair<std::uint64_t, std::uint64_t>;  // worker and incarnation, sequence
  const auto name_of = [](const PackedChunk& chunk) {
    const ChunkHeader header = chunk.header();
    return Name{std::uint64_t{header.worker} << 32 | header.incarnation, header.sequence};
  };
  const auto hash = [](const Name& name) {
    return std::hash<std::uint64_t>{}(name.first * 0x9e3779b97f4a7c15 ^ name.second);
  };
  std::unordered_map<Name, const PackedChunk*, decltype(hash)> known(0, hash);
  for (std::size_t slot = 0; slot < other.cut.chunks.size(); ++slot)
    if (const PackedChunk* chunk = other.cut.chunks[slot].chunk; chunk != nullptr)
      known.emplace(name_of(*chunk), chunk);
  std::size_t shared = 0;
  for (std::size_t slot = 0; slot < snapshot.cut.chunks.size(); ++slot) {
    const PackedChunk* own = snapshot.cut.chunks[slot].chunk;
    const auto found = own == nullptr ? known.end() : known.find(name_of(*own));
    if (found == known.end()) continue;
    const PackedChunk& there = *found->second;
    if (there.header() != own->header() || &there.layout() != &own->layout() ||
        !std::ranges::equal(there.payload(), own->payload()))
      continue;
    snapshot.cut.chunks.edit(slot).chunk = &there;
    snapshot.cut.keeper->chunks.push_back(PackedPtr::share(&there));
    ++shared;
  }
  return shared;
}

}  // namespace troupe::replay
