// Inserting, removing and drawing. What a checkpoint needs is in item_store_cut.cpp.
#include "replay/item_store.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace troupe::replay {

ItemStore::ItemStore(const TableOptions& options)
    : options_(options),
      builder_(options.shape(), options.discount),
      limiter_(options.limiter),
      random_(options.seed) {
  // Address space only; pages are touched as items come. Growing later would copy under the lock.
  const auto expected = static_cast<std::size_t>(std::min<std::int64_t>(options.capacity, 1 << 22));
  const SelectorOptions selectors{.priority_exponent = options.priority_exponent,
                                  .expected_keys = expected};
  selector_ = make_selector(options.selector, selectors);
  remover_ = make_selector(options.remover, selectors);
  items_.reserve(expected);
  chunks_.reserve(expected);
  for (std::int64_t k = 0; !options.items.is_span() && k <= options.n_step; ++k)
    discounts_.push_back(static_cast<float>(std::pow(options.discount, static_cast<double>(k))));
}

ChunkSlot ItemStore::store_chunk(ChunkPtr chunk) {
  bytes_held_ += chunk->bytes();
  if (free_chunks_.empty()) {
    chunks_.push_back({std::move(chunk), StoredChunk::kNone, 1});
    return static_cast<ChunkSlot>(chunks_.size() - 1);
  }
  const ChunkSlot slot = free_chunks_.back();
  free_chunks_.pop_back();
  chunks_[slot] = {std::move(chunk), StoredChunk::kNone, 1};
  return slot;
}

void ItemStore::release_chunk(ChunkSlot slot, std::vector<ChunkPtr>& garbage) {
  StoredChunk& stored = chunks_[slot];
  if (--stored.references > 0) return;
  bytes_held_ -= stored.chunk->bytes();
  garbage.push_back(std::move(stored.chunk));
  stored = StoredChunk{};
  free_chunks_.push_back(slot);
}

std::uint64_t ItemStore::insert(const ChunkPtr& chunk, std::optional<double> priority,
                                std::vector<ChunkPtr>& garbage, bool prefilled) {
  const std::uint32_t steps = chunk->header.steps;
  make_room(chunk->bytes(), garbage);
  const ChunkSlot slot = store_chunk(chunk);  // the builder's reference
  addition_.clear();
  builder_.add(chunk, slot, addition_);
  if (addition_.continues) chunks_[addition_.previous].next = slot;
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

void ItemStore::settle(std::vector<ChunkPtr>& garbage) {
  for (const ChunkSlot slot : addition_.released) release_chunk(slot, garbage);
  counters_.dropped_steps += addition_.dropped_steps;
  counters_.removed_steps += addition_.dropped_steps;
}

void ItemStore::abandon(std::uint32_t worker, std::vector<ChunkPtr>& garbage) {
  addition_.clear();
  builder_.abandon(worker, addition_);
  settle(garbage);
}

void ItemStore::add_item(const BuiltItem& item, std::optional<double> priority,
                         std::vector<ChunkPtr>& garbage) {
  if (held_items() >= static_cast<std::size_t>(options_.capacity)) remove_one(garbage);
  std::uint32_t slot = static_cast<std::uint32_t>(items_.size());
  if (free_items_.empty()) {
    items_.emplace_back();
  } else {
    slot = free_items_.back();
    free_items_.pop_back();
  }
  const std::uint32_t generation = items_[slot].generation + 1;
  items_[slot] = {
      .chunk = item.chunk,
      .row = item.row,
      .steps = static_cast<std::uint16_t>(item.steps),
      .terminal = item.terminal ? std::uint8_t{1} : std::uint8_t{0},
      .live = 1,
      .value = options_.items.is_span() ? item.owned : std::bit_cast<std::uint32_t>(item.reward),
      .generation = generation};
  owned_steps_ += item.owned;
  walk(item.chunk, item.row, item.steps, [&](ChunkSlot held) { ++chunks_[held].references; });
  selector_->insert(slot, priority);
  remover_->insert(slot, priority);
  if (!bounded()) return;
  if (slot >= times_sampled_.size()) times_sampled_.resize(items_.size());
  times_sampled_[slot] = 0;
  draws_left_ += static_cast<std::uint64_t>(options_.max_times_sampled);
}

void ItemStore::remove(Selector::Key slot, std::vector<ChunkPtr>& garbage) {
  if (bounded())
    draws_left_ -= static_cast<std::uint64_t>(options_.max_times_sampled) - times_sampled_[slot];
  selector_->erase(slot);
  remover_->erase(slot);
  ItemRecord& item = items_[slot];
  item.live = 0;
  // Counted down only after the walk, which reads the links.
  std::vector<ChunkSlot>& span = addition_.released;
  const std::size_t first = span.size();
  walk(item.chunk, item.row, item.steps, [&](ChunkSlot held) { span.push_back(held); });
  for (std::size_t i = first; i < span.size(); ++i) release_chunk(span[i], garbage);
  span.resize(first);
  free_items_.push_back(slot);
  limiter_.commit_remove(1);
  ++counters_.removed_items;
  counters_.removed_steps += owned_steps(item);
  owned_steps_ -= owned_steps(item);
}

void ItemStore::make_room(std::uint64_t bytes, std::vector<ChunkPtr>& garbage) {
  if (options_.capacity_bytes == 0) return;
  const auto capacity = static_cast<std::uint64_t>(options_.capacity_bytes);
  while (bytes_held_ + bytes > capacity && held_items() > 0) remove_one(garbage);
}

std::uint64_t ItemStore::enforce_limits(std::vector<ChunkPtr>& garbage) {
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
  for (const Selector::Drawn& one : drawn)
    __builtin_prefetch(chunks_[items_[one.key].chunk].chunk.get());
}

SampledItem ItemStore::sampled(const Selector::Drawn& drawn, std::vector<ChunkPtr>& middle) const {
  const ItemRecord& item = items_[drawn.key];
  const bool span = options_.items.is_span();
  ChunkSlot last = item.chunk;
  SampledItem result;
  result.middle = static_cast<std::uint32_t>(middle.size());
  result.next_row = walk(item.chunk, item.row, item.steps, [&](ChunkSlot slot) {
    if (span && last != item.chunk) middle.push_back(chunks_[last].chunk);
    last = slot;
  });
  result.chunk = chunks_[item.chunk].chunk;
  if (last != item.chunk) result.next_chunk = chunks_[last].chunk;
  result.row = item.row;
  result.steps = item.steps;
  result.slot = drawn.key;
  result.generation = item.generation;
  if (!span) {
    result.reward = std::bit_cast<float>(item.value);
    result.discount = item.terminal != 0 ? 0.0F : discounts_[item.steps];
  }
  result.probability = drawn.probability;
  return result;
}

void ItemStore::draw(std::size_t n, SampledItems& out, std::vector<ChunkPtr>& garbage) {
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
    for (std::size_t i = 0; i < n; ++i) drawn_.push_back(selector_->sample(random_));
    prefetch(drawn_);
    for (const Selector::Drawn& one : drawn_) out.items.push_back(sampled(one, out.middle));
  }
  limiter_.commit_sample(n);
}

// One by one, so that an item that leaves cannot be drawn again by the same call.
void ItemStore::draw_bounded(std::size_t n, SampledItems& out, std::vector<ChunkPtr>& garbage) {
  for (std::size_t i = 0; i < n; ++i) {
    const Selector::Drawn drawn = selector_->sample(random_);
    out.items.push_back(sampled(drawn, out.middle));
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
