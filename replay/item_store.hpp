// What a table holds, without its lock: chunks with reference counts, items that point into them,
// the selectors, the limiter and the ledger. Deterministic. Owned by a Table, which calls it under
// its lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "envs/spec/random.hpp"
#include "replay/item_builder.hpp"
#include "replay/rate_limiter.hpp"
#include "replay/selector.hpp"
#include "replay/table_types.hpp"

namespace troupe::replay {

// One slot of the table. `generation` counts the items that the slot has held. Checkpoints hold it
// as it lies in memory, hence flags of one byte, 0 or 1.
struct ItemRecord {
  ChunkSlot chunk = 0;
  std::uint32_t row = 0;
  std::uint16_t steps = 0;
  std::uint8_t terminal = 0;
  std::uint8_t live = 0;
  std::uint32_t value = 0;  // bits of an n-step item's reward; of another, the steps that it owns
  std::uint32_t generation = 0;
};
static_assert(sizeof(ItemRecord) == 20);

// A chunk, the slot of the one that continues its episode, and how many items and windows need it.
struct StoredChunk {
  static constexpr ChunkSlot kNone = ~ChunkSlot{0};
  ChunkPtr chunk;
  ChunkSlot next = kNone;
  std::uint32_t references = 0;
};

struct StoreCounters {
  std::uint64_t inserted_steps = 0, removed_steps = 0, dropped_steps = 0, lost_steps = 0;
  std::uint64_t inserted_items = 0, removed_items = 0, lost_items = 0;
  std::uint64_t prefilled_steps = 0, prefilled_items = 0;  // at the end of a cut
  std::uint64_t duplicate_chunks = 0, stale_chunks = 0, not_finite_chunks = 0, malformed_chunks = 0;
  std::uint64_t priority_updates = 0, stale_priorities = 0, invalid_priorities = 0;
  std::uint64_t insert_blocked_ns = 0, sample_blocked_ns = 0;
};

// A consistent cut: the records, references to the chunks, and everything else as bytes.
struct StoreCut {
  std::vector<ItemRecord> items;
  std::vector<StoredChunk> chunks;
  std::vector<std::uint8_t> state;
};

class ItemStore {
 public:
  // Names of selectors and ranges have been checked by Table::create.
  explicit ItemStore(const TableOptions& options);

  const ItemBuilder& builder() const { return builder_; }
  const RateLimiter& limiter() const { return limiter_; }
  StoreCounters& counters() { return counters_; }
  void allow(std::uint64_t inserts) { limiter_.allow(inserts); }

  // Stores a chunk whose verdict is kNew and returns the number of items it completed, which get
  // `priority` (see Selector::insert). Chunks that leave the table go to `garbage`, so that the
  // caller frees them outside its lock. `prefilled`: it counts as such, and as balanced in the
  // limiter.
  std::uint64_t insert(const ChunkPtr& chunk, std::optional<double> priority,
                       std::vector<ChunkPtr>& garbage, bool prefilled = false);
  // Whether the limiter gives n samples and the items have as many draws left; why not.
  bool can_sample(std::uint64_t n) const;
  std::string sample_block_reason(std::uint64_t n) const;
  // Draws n items with replacement, which can_sample must allow; those that reach
  // max_times_sampled leave at once.
  void draw(std::size_t n, SampledItems& out, std::vector<ChunkPtr>& garbage);
  void abandon(std::uint32_t worker, std::vector<ChunkPtr>& garbage);
  // Removes what the options do not allow after an adopt. Returns the number of items.
  std::uint64_t enforce_limits(std::vector<ChunkPtr>& garbage);
  // False when the key's item is gone.
  bool update_priority(const ItemKey& key, double priority);

  std::size_t held_items() const { return selector_->size(); }
  void fill(TableStatistics& out) const;

  // O(items + chunks): copies of the records and one reference count per chunk.
  StoreCut cut() const;
  // Rebuilds a fresh store from a cut; `limits_changed` says whether the limiter's options differ
  // from the saved ones. kCorrupt, naming what contradicts what, when the parts do not fit
  // together.
  Result<void> adopt(StoreCut cut, bool& limits_changed);

 private:
  ChunkSlot store_chunk(ChunkPtr chunk);
  void release_chunk(ChunkSlot slot, std::vector<ChunkPtr>& garbage);
  void add_item(const BuiltItem& item, std::optional<double> priority,
                std::vector<ChunkPtr>& garbage);
  void remove(Selector::Key slot, std::vector<ChunkPtr>& garbage);
  void remove_one(std::vector<ChunkPtr>& garbage) {
    remove(remover_->sample(random_).key, garbage);
  }
  bool bounded() const { return options_.max_times_sampled > 0; }
  SampledItem sampled(const Selector::Drawn& drawn, std::vector<ChunkPtr>& middle) const;
  // Removes items until `bytes` more fit capacity_bytes, or none is left.
  void make_room(std::uint64_t bytes, std::vector<ChunkPtr>& garbage);
  void draw_bounded(std::size_t n, SampledItems& out, std::vector<ChunkPtr>& garbage);
  void settle(std::vector<ChunkPtr>& garbage);  // what addition_ says about released windows
  // Calls visit(slot) for each chunk from the item's first to the one that holds s_{t+k}, and
  // returns the row in that one.
  template <class Visit>
  std::uint32_t walk(ChunkSlot slot, std::uint32_t row, std::uint32_t steps, Visit visit) const;
  std::uint64_t owned_steps(const ItemRecord& item) const {
    return options_.items.is_span() ? item.value : 1;
  }
  void prefetch(std::span<const Selector::Drawn> drawn) const;
  Result<void> check_item(const ItemRecord& item) const;
  Result<void> count_references();
  Result<void> count_draws();
  Result<void> check_ledger() const;

  TableOptions options_;
  ItemBuilder builder_;
  RateLimiter limiter_;
  std::unique_ptr<Selector> selector_, remover_;
  Random random_;
  std::vector<ItemRecord> items_;          // [slot]
  std::vector<std::uint32_t> free_items_;  // slots that are not live, last freed last
  std::vector<StoredChunk> chunks_;        // [chunk slot]
  std::vector<ChunkSlot> free_chunks_;
  std::vector<float> discounts_;              // [k] gamma^k
  std::vector<std::uint32_t> times_sampled_;  // [slot]; empty without max_times_sampled
  std::uint64_t draws_left_ = 0;              // over all held items, with max_times_sampled
  std::uint64_t bytes_held_ = 0;
  std::uint64_t owned_steps_ = 0;  // by the items that are held
  StoreCounters counters_;
  ItemBuilder::Addition addition_;      // scratch
  std::vector<Selector::Drawn> drawn_;  // scratch
};

template <class Visit>
std::uint32_t ItemStore::walk(ChunkSlot slot, std::uint32_t row, std::uint32_t steps,
                              Visit visit) const {
  row += steps;
  visit(slot);
  for (const ChunkHeader* header = &chunks_[slot].chunk->header;
       row > header->steps || (row == header->steps && !header->ends());
       header = &chunks_[slot].chunk->header) {
    row -= header->steps;
    slot = chunks_[slot].next;
    visit(slot);
  }
  return row;
}

}  // namespace troupe::replay
