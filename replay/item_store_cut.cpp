// The item store's consistent cut and the way back, which trusts nothing that it can check.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "replay/item_store.hpp"

namespace troupe::replay {
namespace {

// Counters in a fixed order, for both directions.
template <class Counters, class Visit>
void visit_counters(Counters& c, Visit visit) {
  for (auto* counter :
       {&c.inserted_steps, &c.removed_steps, &c.dropped_steps, &c.lost_steps, &c.inserted_items,
        &c.removed_items, &c.lost_items, &c.duplicate_chunks, &c.stale_chunks, &c.not_finite_chunks,
        &c.malformed_chunks, &c.priority_updates, &c.stale_priorities, &c.invalid_priorities,
        &c.insert_blocked_ns, &c.sample_blocked_ns, &c.prefilled_steps, &c.prefilled_items})
    visit(*counter);
}

tl::unexpected<Error> corrupt(const std::string& what) {
  return fail(ErrorCode::kCorrupt, "table content contradicts itself: " + what);
}

}  // namespace

StoreCut ItemStore::cut() {
  StoreCut cut;
  cut.items = items_;
  cut.chunks = chunks_;
  const auto keeper = std::make_shared<CutKeeper>();
  keepers_.push_back(keeper);
  cut.keeper = std::shared_ptr<CutKeeper>(keeper.get(), [keeper](CutKeeper* kept) {
    kept->done.store(true, std::memory_order_release);
  });
  ByteWriter out(cut.state);
  const std::vector<std::uint32_t> free_items(free_items_.begin(), free_items_.end());
  out.array(std::span<const std::uint32_t>(free_items));
  out.array(std::span<const ChunkSlot>(free_chunks_));
  for (const std::uint64_t word : random_.state()) out.put(word);
  visit_counters(counters_, [&](std::uint64_t value) { out.put(value); });
  limiter_.save(out);
  builder_.save(out);
  selector_->save(out);
  remover_->save(out);
  out.array(std::span<const std::uint32_t>(times_sampled_));
  out.put(next_generation_);
  return cut;
}

// Whether every chunk that the item needs is there and they follow each other, so that walk() may
// trust it.
Result<void> ItemStore::check_item(const ItemRecord& item) const {
  if (item.chunk >= chunks_.size() || chunks_[item.chunk].chunk == nullptr)
    return corrupt("an item refers to a chunk that is not there");
  const ItemShape& shape = builder_.shape();
  const StoredChunk* stored = &chunks_[item.chunk];
  if (item.row >= stored->chunk->steps()) return corrupt("an item lies outside its chunk");
  // The lead is what the stack asks for, or all that the episode has.
  const std::uint64_t begin = std::uint64_t{stored->chunk->first_step()} + item.row;
  if (item.lead > builder_.lead() || (item.lead < builder_.lead() && begin != 0))
    return corrupt("an item lacks frames of its stack");
  std::uint64_t row = item.row, lead = item.lead, steps = 0;
  for (std::uint64_t left = lead + shape.length;;) {
    const PackedChunk& chunk = *stored->chunk;
    const std::uint64_t here = chunk.steps() - row, taken = std::min(left, here);
    steps += taken;
    left -= taken;
    row += taken;
    const bool at_end = taken == here && chunk.ends();
    if (at_end && steps <= lead) return corrupt("an item's frames are of another episode");
    if (row < chunk.steps() || (at_end && (left == 0 || !shape.across_episodes))) break;
    if (stored->next >= chunks_.size() || chunks_[stored->next].chunk == nullptr)
      return corrupt("an item's last observation is not there");
    row -= chunk.steps();
    stored = &chunks_[stored->next];
    const ChunkHeader header = chunk.header(), next = stored->chunk->header();
    const bool follows =
        header.ends()
            ? shape.across_episodes && next.first_step == 0 && next.episode == header.episode + 1
            : next.episode == header.episode && next.first_step == header.first_step + header.steps;
    if (!follows || next.worker != header.worker || next.incarnation != header.incarnation ||
        next.environment != header.environment)
      return corrupt("an item spans steps that do not follow each other");
  }
  if (owned_steps(item) > steps - lead) return corrupt("an item owns more steps than it has");
  return {};
}

// Counts who needs each chunk, and refuses chunks that nobody needs.
Result<void> ItemStore::count_references() {
  for (std::size_t slot = 0; slot < chunks_.size(); ++slot) chunks_.edit(slot).references = 0;
  for (const ChunkSlot slot : builder_.held_chunks()) ++chunks_.edit(slot).references;
  owned_steps_ = 0;
  for (std::size_t slot = 0; slot < items_.size(); ++slot) {
    const ItemRecord& item = items_[slot];
    if (item.live == 0) continue;
    if (auto good = check_item(item); !good) return good;
    owned_steps_ += owned_steps(item);
    walk(item, [&](ChunkSlot needed) { ++chunks_.edit(needed).references; });
  }
  std::vector<bool> is_free(chunks_.size());
  for (const ChunkSlot slot : free_chunks_) {
    if (slot >= chunks_.size() || is_free[slot])
      return corrupt("a free chunk slot is listed twice");
    is_free[slot] = true;
  }
  bytes_held_ = raw_bytes_ = chunk_memory_ = disk_bytes_ = 0;
  for (std::size_t slot = 0; slot < chunks_.size(); ++slot) {
    const StoredChunk& stored = chunks_[slot];
    if ((stored.references == 0) != is_free[slot] || (stored.chunk == nullptr) != is_free[slot])
      return corrupt("chunk slot " + std::to_string(slot) + " is neither free nor needed");
    if (stored.chunk != nullptr) account(*stored.chunk, true);
  }
  return {};
}

Result<void> ItemStore::adopt(StoreCut cut, bool& limits_changed) {
  items_ = std::move(cut.items);
  chunks_ = std::move(cut.chunks);
  for (std::size_t slot = 0; slot < chunks_.size(); ++slot) {
    if (chunks_[slot].chunk == nullptr) continue;
    storage_->hold(*PackedPtr::share(chunks_[slot].chunk).release());  // a reference of its own
  }
  ByteReader in(cut.state);
  Random::State random{};
  std::vector<std::uint32_t> free_items;
  in.array(free_items);
  free_items_.assign(free_items.begin(), free_items.end());
  in.array(free_chunks_);
  for (std::uint64_t& word : random) in.get(word);
  random_.set_state(random);
  visit_counters(counters_, [&](std::uint64_t& value) { in.get(value); });
  limits_changed = limiter_.load(in);
  std::vector<bool> live(items_.size());
  for (std::size_t slot = 0; slot < live.size(); ++slot) live[slot] = items_[slot].live != 0;
  const auto find = [this](ChunkSlot slot, ChunkSlot before) {
    const bool follows = before == ItemBuilder::kNoChunk ||
                         (before < chunks_.size() && chunks_[before].next == slot);
    return slot < chunks_.size() && follows ? PackedPtr::share(chunks_[slot].chunk) : PackedPtr();
  };
  if (!builder_.load(in, find)) return corrupt("the open windows do not fit the chunks");
  if (!selector_->load(in, live) || !remover_->load(in, live))
    return corrupt("the selectors do not fit the items");
  if (!in.array(times_sampled_)) return corrupt("the counts of draws are missing");
  in.get(next_generation_);
  if (!in.finished()) return corrupt("bytes are missing from its state or left over");
  if (auto good = count_references(); !good) return good;
  if (auto good = count_draws(); !good) return good;
  return check_ledger();
}

// Items go on with the draws they have had, under the bound of now: those of a table that had none
// begin at 0, and nothing counts beyond it.
Result<void> ItemStore::count_draws() {
  if (!times_sampled_.empty() && times_sampled_.size() != items_.size())
    return corrupt("it counts draws of other items");
  times_sampled_.resize(bounded() ? items_.size() : 0);
  const auto most = static_cast<std::uint32_t>(options_.max_times_sampled);
  draws_left_ = 0;
  for (std::size_t slot = 0; slot < times_sampled_.size(); ++slot) {
    times_sampled_[slot] = std::min(times_sampled_[slot], most);
    if (items_[slot].live != 0) draws_left_ += most - times_sampled_[slot];
  }
  return {};
}

Result<void> ItemStore::check_ledger() const {
  std::vector<bool> is_free(items_.size());
  for (const std::uint32_t slot : free_items_) {
    if (slot >= items_.size() || items_[slot].live != 0 || is_free[slot])
      return corrupt("a free item slot is in use");
    is_free[slot] = true;
  }
  if (!std::isfinite(limiter_.cursor())) return corrupt("the limiter's cursor is no number");
  TableStatistics sums;
  fill(sums);
  if (sums.held_items + free_items_.size() != items_.size() || sums.held_items != limiter_.held() ||
      sums.inserted_steps + sums.prefilled_steps !=
          sums.held_steps + sums.removed_steps + sums.lost_steps ||
      sums.inserted_items + sums.prefilled_items !=
          sums.held_items + sums.removed_items + sums.lost_items)
    return corrupt("the ledger does not add up");
  return {};
}

}  // namespace troupe::replay
