// What a table holds, without its lock: chunks with reference counts, items that point into them,
// the selectors, the limiter and the ledger. Deterministic. Owned by a Table, which calls it under
// its lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "envs/spec/random.hpp"
#include "replay/chunk_storage.hpp"
#include "replay/item_builder.hpp"
#include "replay/rate_limiter.hpp"
#include "replay/selector.hpp"
#include "replay/store_cut.hpp"
#include "replay/table_types.hpp"

namespace troupe::replay {

struct StoreCounters {
  std::uint64_t inserted_steps = 0, removed_steps = 0, dropped_steps = 0, lost_steps = 0;
  std::uint64_t inserted_items = 0, removed_items = 0, lost_items = 0;
  std::uint64_t prefilled_steps = 0, prefilled_items = 0;
  std::uint64_t duplicate_chunks = 0, stale_chunks = 0, not_finite_chunks = 0, malformed_chunks = 0;
  std::uint64_t priority_updates = 0, stale_priorities = 0, invalid_priorities = 0;
  std::uint64_t insert_blocked_ns = 0, sample_blocked_ns = 0;
};

class ItemStore {
 public:
  // Names of selectors and ranges have been checked by Table::create. `lead` is the signature's.
  ItemStore(const TableOptions& options, std::uint32_t lead, std::shared_ptr<ChunkStorage> storage);
  ~ItemStore();
  ItemStore(const ItemStore&) = delete;
  ItemStore& operator=(const ItemStore&) = delete;

  const ItemBuilder& builder() const { return builder_; }
  const RateLimiter& limiter() const { return limiter_; }
  StoreCounters& counters() { return counters_; }
  void allow(std::uint64_t inserts) { limiter_.allow(inserts); }

  // Stores a chunk whose verdict is kNew and returns the number of items it completed, which get
  // `priority` (see Selector::insert). Chunks that leave the table go to `garbage`, so that the
  // caller frees them outside its lock. `prefilled`: it counts as such, and as balanced in the
  // limiter.
  std::uint64_t insert(const PackedPtr& chunk, std::optional<double> priority,
                       std::vector<PackedPtr>& garbage, bool prefilled = false);
  // Whether the limiter gives n samples and the items have as many draws left; why not.
  bool can_sample(std::uint64_t n) const;
  std::string sample_block_reason(std::uint64_t n) const;
  // Draws n items with replacement, which can_sample must allow; those that reach
  // max_times_sampled leave at once.
  void draw(std::size_t n, SampledItems& out, std::vector<PackedPtr>& garbage);
  void abandon(std::uint32_t worker, std::vector<PackedPtr>& garbage);
  // Removes what the options do not allow after an adopt. Returns the number of items.
  std::uint64_t enforce_limits(std::vector<PackedPtr>& garbage);
  // False when the key's item is gone.
  bool update_priority(const ItemKey& key, double priority);

  std::size_t held_items() const { return selector_->size(); }
  void fill(TableStatistics& out) const;

  // Shares records and chunks (replay/store_cut.hpp) and copies the rest: O(items / 4096 + free
  // slots), O(items) with priorities, max_times_sampled or, by fifo and lifo, other removals.
  StoreCut cut();
  // Rebuilds a fresh store from a cut; `limits_changed` says whether the limiter's options differ
  // from the saved ones. kCorrupt, naming what contradicts what, when the parts do not fit
  // together.
  Result<void> adopt(StoreCut cut, bool& limits_changed);

 private:
  ChunkSlot store_chunk(PackedPtr chunk);
  void release_chunk(ChunkSlot slot, std::vector<PackedPtr>& garbage);
  void retire(PackedPtr chunk, std::vector<PackedPtr>& garbage);
  void prune_keepers(std::vector<PackedPtr>& garbage);
  void account(const PackedChunk& chunk, bool held);
  void add_item(const BuiltItem& item, std::optional<double> priority,
                std::vector<PackedPtr>& garbage);
  void remove(Selector::Key slot, std::vector<PackedPtr>& garbage);
  void remove_one(std::vector<PackedPtr>& garbage) {
    remove(remover_->sample(random_).key, garbage);
  }
  bool bounded() const { return options_.max_times_sampled > 0; }
  bool is_span() const { return options_.items.is_span(); }
  SampledItem sampled(const Selector::Drawn& drawn, std::vector<PackedPtr>& chains) const;
  // Removes items until `bytes` more fit capacity_bytes, or none is left.
  void make_room(std::uint64_t bytes, std::vector<PackedPtr>& garbage);
  void draw_bounded(std::size_t n, SampledItems& out, std::vector<PackedPtr>& garbage);
  void settle(std::vector<PackedPtr>& garbage);  // what addition_ says about released windows
  // Calls visit(slot) for each chunk from the item's first to the one that holds s_{t+k}.
  struct Reach {
    ChunkSlot begin = 0;         // holds s_t ...
    std::uint32_t row = 0;       // ... here
    std::uint32_t next_row = 0;  // of s_{t+k} in the last chunk visited
    std::uint32_t steps = 0;     // k: all that the shape allows, or fewer at an episode's end
    bool terminal = false;       // the last of them terminated its episode
  };
  template <class Visit>
  Reach walk(const ItemRecord& item, Visit visit) const;
  std::uint64_t owned_steps(const ItemRecord& item) const { return is_span() ? item.value : 1; }
  void prefetch(std::span<const Selector::Drawn> drawn) const;
  Result<void> check_item(const ItemRecord& item) const;
  Result<void> count_references();
  Result<void> count_draws();
  Result<void> check_ledger() const;
  std::uint64_t memory_bytes() const;

  TableOptions options_;
  std::shared_ptr<ChunkStorage> storage_;
  ItemBuilder builder_;
  RateLimiter limiter_;
  std::unique_ptr<Selector> selector_, remover_;
  Random random_;
  CowVector<ItemRecord> items_;           // [slot]
  std::deque<std::uint32_t> free_items_;  // slots that are not live; the first freed is used first
  CowVector<StoredChunk> chunks_;         // [chunk slot]; each holds one reference to its chunk
  std::vector<ChunkSlot> free_chunks_;
  std::vector<std::shared_ptr<CutKeeper>>
      keepers_;                               // of the cuts that are still there, oldest first
  std::vector<float> discounts_;              // [k] gamma^k
  std::vector<std::uint32_t> times_sampled_;  // [slot]; empty without max_times_sampled
  std::uint64_t draws_left_ = 0;              // over all held items, with max_times_sampled
  std::uint64_t bytes_held_ = 0, raw_bytes_ = 0, chunk_memory_ = 0, disk_bytes_ = 0;
  std::uint64_t owned_steps_ = 0;  // by the items that are held
  std::uint32_t next_generation_ = 1;
  StoreCounters counters_;
  ItemBuilder::Addition addition_;      // scratch
  std::vector<Selector::Drawn> drawn_;  // scratch
};

template <class Visit>
ItemStore::Reach ItemStore::walk(const ItemRecord& item, Visit visit) const {
  const ItemShape& shape = builder_.shape();
  Reach reach;
  ChunkSlot slot = item.chunk;
  const PackedChunk* chunk = chunks_[slot].chunk;
  std::uint64_t row = item.row;
  const auto move_on = [&] {
    row -= chunk->steps();
    slot = chunks_[slot].next;
    chunk = chunks_[slot].chunk;
    visit(slot);
  };
  visit(slot);
  for (row += item.lead; row >= chunk->steps();) move_on();
  reach.begin = slot;
  reach.row = static_cast<std::uint32_t>(row);
  for (std::uint64_t left = shape.length;;) {
    const std::uint64_t here = chunk->steps() - row;  // steps of this chunk from `row` on
    const std::uint64_t taken = std::min(left, here);
    reach.steps += static_cast<std::uint32_t>(taken);
    left -= taken;
    row += taken;
    // The observation after a chunk's last step is its own only where the episode ends.
    const bool at_end = taken == here && chunk->ends();
    if (row < chunk->steps() || (at_end && (left == 0 || !shape.across_episodes))) {
      reach.terminal = at_end && chunk->end() == EpisodeEnd::kTerminated;
      break;
    }
    move_on();
  }
  reach.next_row = static_cast<std::uint32_t>(row);
  return reach;
}

}  // namespace troupe::replay
