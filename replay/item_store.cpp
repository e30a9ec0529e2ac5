// Inserting, removing and drawing. What a checkpoint needs is in item_store_cut.cpp.
#include "replay/item_store.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <utility>

namespace troupe::replay {

ItemStore::ItemStore(const TableOptions& options, std::uint32_t lead,
                     std::shared_ptr<ChunkStorage> storage)
    : options_(options),
      storage_(std::move(storage)),
      builder_(options.shape(), options.discount, lead),
      limiter_(options.limiter),
      random_(options.seed) {
  // Address space only; pages are touched as items come. Growing later would copy under the lock.
  const auto expected = static_cast<std::size_t>(std::min<std::int64_t>(options.capacity, 1 << 22));
  const SelectorOptions selectors{.priority_exponent = options.priority_exponent,
                                  .expected_keys = expected};
  selector_ = make_selector(options.selector, selectors);
  remover_ = make_selector(options.remover, selectors);
  for (std::int64_t k = 0; !is_span() && k <= options.n_step; ++k)
    discounts_.push_back(static_cast<float>(std::pow(options.discount, static_cast<double>(k))));
}

// What is left goes to the cuts that still need it.
ItemStore::~ItemStore() {
  std::vector<PackedPtr> garbage;
  for (std::size_t slot = 0; slot < chunks_.size(); ++slot) {
    if (chunks_[slot].chunk == nullptr) continue;
    storage_->drop(*chunks_[slot].chunk);
    retire(PackedPtr::adopt(chunks_[slot].chunk), garbage);
  }
  for (std::size_t i = 0; i + 1 < keepers_.size(); ++i) keepers_[i]->later = keepers_[i + 1];
}

// Later cuts' chunks may be needed by earlier ones, never the other way round.
void ItemStore::prune_keepers(std::vector<PackedPtr>& garbage) {
  for (std::size_t i = keepers_.size(); i-- > 0;) {
    if (!keepers_[i]->done.load(std::memory_order_acquire)) continue;
    std::vector<PackedPtr>& to = i > 0 ? keepers_[i - 1]->chunks : garbage;
    std::move(keepers_[i]->chunks.begin(), keepers_[i]->chunks.end(), std::back_inserter(to));
    keepers_.erase(keepers_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void ItemStore::retire(PackedPtr chunk, std::vector<PackedPtr>& garbage) {
  if (!keepers_.empty()) prune_keepers(garbage);
  (keepers_.empty() ? garbage : keepers_.back()->chunks).push_back(std::move(chunk));
}

void ItemStore::account(const PackedChunk& chunk, bool held) {
  const std::uint64_t sign = held ? 1 : ~std::uint64_t{0};  // unsigned -1
  bytes_held_ += sign * chunk.bytes();
  raw_bytes_ += sign * chunk.raw_bytes();
  chunk_memory_ += sign * chunk.memory_bytes();
  if (chunk.on_disk()) disk_bytes_ += sign * chunk.bytes();
}

ChunkSlot ItemStore::store_chunk(PackedPtr chunk) {
  account(*chunk, true);
  storage_->hold(*chunk);
  const StoredChunk stored{chunk.release(), StoredChunk::kNone, 1};
  if (free_chunks_.empty()) {
    chunks_.push_back(stored);
    return static_cast<ChunkSlot>(chunks_.size() - 1);
  }
  const ChunkSlot slot = free_chunks_.back();
  free_chunks_.pop_back();
  chunks_.edit(slot) = stored;
  return slot;
}

void ItemStore::release_chunk(ChunkSlot slot, std::vector<PackedPtr>& garbage) {
  StoredChunk& stored = chunks_.edit(slot);
  if (--stored.references > 0) return;
  account(*stored.chunk, false);
  storage_->drop(*stored.chunk);
  retire(PackedPtr::adopt(stored.chunk), garbage);
  stored = StoredChunk{};
  free_chunks_.push_back(slot);
}

std::uint64_t ItemStore::insert(const PackedPtr& chunk, std::optional<double> priority,
                                std::vector<PackedPtr>& garbage, bool prefilled) {
  const std::uint32_t steps = chunk->steps();
  make_room(chunk->bytes(), garbage);
  const ChunkSlot slot = store_chunk(chunk);  // the builder's reference
  addition_.clear();
  builder_.add(chunk, slot, addition_);
  if (addition_.continues) chunks_.edit(addition_.previous).next = slot;
  const std::size_t items = addition_.items.size();
  (prefilled ? counters_.prefilled_steps : counters_.inserted_steps) += steps;
  (prefilled ? counters_.prefilled_items : counters_.inserted_items) += items;
  for (const BuiltItem& item : addition_.items) add_item(item, priority, garbage);
  if (prefilled)
    limiter_.commit_balanced(items);
  else
    limiter_.commit_insert(items);
  settle(garbage);
  return items;
}

void ItemStore::settle(std::vector<PackedPtr>& garbage) {
  for (const ChunkSlot slot : addition_.released) release_chunk(slot, garbage);
  counters_.dropped_steps += addition_.dropped_steps;
  counters_.removed_steps += addition_.dropped_steps;
}

void ItemStore::abandon(std::uint32_t worker, std::vector<PackedPtr>& garbage) {
  addition_.clear();
  builder_.abandon(worker, addition_);
  settle(garbage);
}

void ItemStore::add_item(const BuiltItem& item, std::optional<double> priority,
                         std::vector<PackedPtr>& garbage) {
  if (held_items() >= static_cast<std::size_t>(options_.capacity)) remove_one(garbage);
  const ItemRecord record{
      .chunk = item.chunk,
      .row = item.row & ItemRecord::kMaxRow,
      .lead = item.lead & ItemRecord::kMaxLead,
      .live = 1,
      .value = is_span() ? item.owned : std::bit_cast<std::uint32_t>(item.reward),
      .generation = next_generation_++};
  std::uint32_t slot = static_cast<std::uint32_t>(items_.size());
  if (free_items_.empty()) {
    items_.push_back(record);
  } else {
    slot = free_items_.front();
    free_items_.pop_front();
    items_.edit(slot) = record;
  }
  owned_steps_ += item.owned;
  walk(record, [&](ChunkSlot held) { ++chunks_.edit(held).references; });
  selector_->insert(slot, priority);
  remover_->insert(slot, priority);
  if (!bounded()) return;
  if (slot >= times_sampled_.size()) times_sampled_.resize(items_.size());
  times_sampled_[slot] = 0;
  draws_left_ += static_cast<std::uint64_t>(options_.max_times_sampled);
}

void ItemStore::remove(Selector::Key slot, std::vector<PackedPtr>& garbage) {
  if (bounded())
    draws_left_ -= static_cast<std::uint64_t>(options_.max_times_sampled) - times_sampled_[slot];
  selector_->erase(slot);
  remover_->erase(slot);
  items_.edit(slot).live = 0;
  const ItemRecord item = items_[slot];
  // Counted down only after the walk, which reads the links.
  std::vector<ChunkSlot>& span = addition_.released;
  const std::size_t first = span.size();
  walk(item, [&](ChunkSlot held) { span.push_back(held); });
  for (std::size_t i = first; i < span.size(); ++i) release_chunk(span[i], garbage);
  span.resize(first);
  free_items_.push_back(slot);
  limiter_.commit_remove(1);
  ++counters_.removed_items;
  counters_.removed_steps += owned_steps(item);
  owned_steps_ -= owned_steps(item);
}

void ItemStore::make_room(std::uint64_t bytes, std::vector<PackedPtr>& garbage) {
  if (options_.capacity_bytes == 0) return;
  const auto capacity = static_cast<std::uint64_t>(options_.capacity_bytes);
  while (bytes_held_ + bytes > capacity && held_items() > 0) remove_one(garbage);
}

std::uint64_t ItemStore::enforce_limits(std::vector<PackedPtr>& garbage) {
  const std::uint64_t before = counters_.removed_items;
  for (Selector::Key slot = 0; slot < times_sampled_.size(); ++slot)
    if (items_[slot].live != 0 &&
        times_sampled_[slot] == static_cast<std::uint64_t>(options_.max_times_sampled))
      remove(slot, garbage);
  while (held_items() > static_cast<std::size_t>(options_.capacity)) remove_one(garbage);
  make_room(0, garbage);
  return counters_.removed_items - before;
}

bool ItemStore::can_sample(std::uint64_t n) const {
  return held_items() > 0 && limiter_.can_sample(n) && (!bounded() || draws_left_ >= n);
}

std::string ItemStore::sample_block_reason(std::uint64_t n) const {
  if (can_sample(n)) return {};
  if (std::string reason = limiter_.sample_block_reason(n); !reason.empty()) return reason;
  if (held_items() == 0) return "the table holds no item";
  return "sample waits for inserts: " + std::to_string(n) + " draws are wanted and " +
         std::to_string(draws_left_) + " are left of the " + std::to_string(held_items()) +
         " items' max_times_sampled " + std::to_string(options_.max_times_sampled);
}

// Fetches records and chunks of all drawn items into the cache before they are read one by one: at
// a million items each is a miss, and they overlap this way.
void ItemStore::prefetch(std::span<const Selector::Drawn> drawn) const {
  for (const Selector::Drawn& one : drawn) __builtin_prefetch(&items_[one.key]);
  for (const Selector::Drawn& one : drawn) __builtin_prefetch(&chunks_[items_[one.key].chunk]);
  for (const Selector::Drawn& one : drawn) __builtin_prefetch(chunks_[items_[one.key].chunk].chunk);
}

SampledItem ItemStore::sampled(const Selector::Drawn& drawn, std::vector<PackedPtr>& chains) const {
  const ItemRecord& item = items_[drawn.key];
  const bool chained = is_span() || builder_.lead() > 0;
  SampledItem result;
  result.chain = static_cast<std::uint32_t>(chains.size());
  ChunkSlot last = item.chunk;
  const Reach reach = walk(item, [&](ChunkSlot slot) {
    if (chained) chains.push_back(PackedPtr::share(chunks_[slot].chunk));
    last = slot;
  });
  result.chain_size = static_cast<std::uint32_t>(chains.size()) - result.chain;
  result.chunk = PackedPtr::share(chunks_[reach.begin].chunk);
  if (last != reach.begin) result.next_chunk = PackedPtr::share(chunks_[last].chunk);
  result.first_row = item.row;
  result.lead = item.lead;
  result.row = reach.row;
  result.next_row = reach.next_row;
  result.steps = reach.steps;
  result.slot = drawn.key;
  result.generation = item.generation;
  if (!is_span()) {
    result.reward = std::bit_cast<float>(item.value);
    result.discount = reach.terminal ? 0.0F : discounts_[reach.steps];
  }
  result.probability = drawn.probability;
  return result;
}

void ItemStore::draw(std::size_t n, SampledItems& out, std::vector<PackedPtr>& garbage) {
  const Selector::Population population = selector_->population();
  out.shard = options_.shard;
  out.shard_epoch = options_.shard_epoch;
  out.held_items = held_items();
  out.total_mass = population.mass;
  out.min_probability = population.min_probability;
  out.importance_exponent = options_.selector == kPrioritised ? options_.importance_exponent : 0.0;
  out.weight_scale = options_.weight_scale;
  out.items.reserve(n);
  if (bounded()) {
    draw_bounded(n, out, garbage);
  } else {
    drawn_.clear();
    selector_->sample_many(random_, n, drawn_);
    prefetch(drawn_);
    for (const Selector::Drawn& one : drawn_) out.items.push_back(sampled(one, out.chains));
  }
  limiter_.commit_sample(n);
}

// One by one, so that an item that leaves cannot be drawn again by the same call.
void ItemStore::draw_bounded(std::size_t n, SampledItems& out, std::vector<PackedPtr>& garbage) {
  for (std::size_t i = 0; i < n; ++i) {
    const Selector::Drawn drawn = selector_->sample(random_);
    out.items.push_back(sampled(drawn, out.chains));
    --draws_left_;
    if (++times_sampled_[drawn.key] == static_cast<std::uint64_t>(options_.max_times_sampled))
      remove(drawn.key, garbage);
  }
}

bool ItemStore::update_priority(const ItemKey& key, double priority) {
  const bool current = key.shard == options_.shard && key.shard_epoch == options_.shard_epoch &&
                       key.slot < items_.size() && items_[key.slot].live != 0 &&
                       items_[key.slot].generation == key.generation;
  if (current) {
    selector_->update(key.slot, priority);
    remover_->update(key.slot, priority);
  }
  ++(current ? counters_.priority_updates : counters_.stale_priorities);
  return current;
}

std::uint64_t ItemStore::memory_bytes() const {
  return sizeof(*this) + chunk_memory_ + items_.bytes() + chunks_.bytes() +
         sizeof(std::uint32_t) *
             (free_items_.size() + free_chunks_.capacity() + times_sampled_.capacity()) +
         selector_->memory_bytes() + remover_->memory_bytes() + builder_.memory_bytes();
}

void ItemStore::fill(TableStatistics& out) const {
  out.inserted_steps = counters_.inserted_steps;
  out.removed_steps = counters_.removed_steps;
  out.dropped_steps = counters_.dropped_steps;
  out.lost_steps = counters_.lost_steps;
  out.inserted_items = counters_.inserted_items;
  out.removed_items = counters_.removed_items;
  out.lost_items = counters_.lost_items;
  out.prefilled_steps = counters_.prefilled_steps;
  out.prefilled_items = counters_.prefilled_items;
  out.held_items = held_items();
  out.pending_steps = builder_.pending_steps();
  out.held_steps = owned_steps_ + out.pending_steps;
  out.sampled_items = limiter_.samples();
  out.chunks = chunks_.size() - free_chunks_.size();
  out.bytes_held = bytes_held_;
  out.raw_bytes = raw_bytes_;
  out.memory_bytes = memory_bytes();
  out.chunk_memory_bytes = chunk_memory_;
  out.disk_bytes = disk_bytes_;
  out.duplicate_chunks = counters_.duplicate_chunks;
  out.stale_chunks = counters_.stale_chunks;
  out.not_finite_chunks = counters_.not_finite_chunks;
  out.malformed_chunks = counters_.malformed_chunks;
  out.priority_updates = counters_.priority_updates;
  out.stale_priorities = counters_.stale_priorities;
  out.invalid_priorities = counters_.invalid_priorities;
  out.insert_blocked_ms = counters_.insert_blocked_ns / 1000000;
  out.sample_blocked_ms = counters_.sample_blocked_ns / 1000000;
  const Selector::Population population = selector_->population();
  out.total_mass = population.mass;
  out.min_probability = population.min_probability;
  out.cursor = limiter_.cursor();
  out.samples_per_insert = limiter_.measured_spi();
  out.limiter = limiter_.state_text();
}

}  // namespace troupe::replay
