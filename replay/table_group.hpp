// Tables of one shard that see the same steps and make different items of them: other shapes,
// n-step returns, selectors, limiters or capacities. A chunk is packed once and held by all of
// them, so each observation is stored once; it leaves memory with the last table that needs it.
//
//   auto storage = ChunkStorage::create().value();
//   auto transitions = Table::create(one, signature, storage).value();
//   auto sequences = Table::create(other, signature, storage).value();
//   auto both = TableGroup::of({transitions.get(), sequences.get()}).value();
//   both.insert(chunk, 1s);
//
// Thread-safe like the tables, which must outlive it. Every table may also be used by itself, and
// belong to several groups.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "replay/table.hpp"

namespace troupe::replay {

class TableGroup {
 public:
  // kInvalidArgument when there is none, one is named twice, or they differ in columns, in how
  // columns are packed, or in their storage.
  static Result<TableGroup> of(std::vector<Table*> tables);

  // All tables take the chunk or none does. kRefused if one of them refuses it; else kDuplicate if
  // all of them have it; else kWouldBlock, with the reason, while the limiter of one that lacks it
  // holds it back; else kAccepted: those that lacked it took it, and the others count a duplicate
  // (after some were restored from older checkpoints). `items` is the sum over the tables.
  InsertOutcome try_insert(const ChunkPtr& chunk, std::optional<double> priority = {}) const;
  InsertOutcome insert(const ChunkPtr& chunk, Table::Nanoseconds timeout,
                       std::optional<double> priority = {}) const;

  const std::vector<Table*>& tables() const { return tables_; }

 private:
  friend class Table;
  class Locks;
  struct Decision;

  explicit TableGroup(std::vector<Table*> tables) : tables_(std::move(tables)) {}
  // Into tables that are in the order of their addresses, in which all are locked.
  static InsertOutcome insert(std::span<Table* const> tables, const ChunkPtr& chunk,
                              Table::Nanoseconds timeout, std::optional<double> priority);
  static Decision decide(std::span<Table* const> tables, const ChunkHeader& header);
  static InsertOutcome commit(std::span<Table* const> tables, const PackedPtr& chunk,
                              const ChunkHeader& header, std::optional<double> priority,
                              Table::Garbage& garbage);

  std::vector<Table*> tables_;
};

// Lets `snapshot`, which was read from a file, share the chunks that `other`, of a table with the
// same columns, has just the same: what the tables of a group shared before they were saved.
// O(chunks of both). Returns how many chunks those are.
std::size_t share_chunks(TableSnapshot& snapshot, const TableSnapshot& other);

}  // namespace troupe::replay
