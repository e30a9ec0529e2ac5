// By hand because std::push_heap and its kin do not say where a key has moved to.
#include "replay/selectors/heap.hpp"

#include <algorithm>
#include <utility>

#include "replay/selectors/saved_keys.hpp"

namespace troupe::replay {

bool HeapSelector::before(const Entry& a, const Entry& b) const {
  if (a.priority != b.priority)
    return first_ == First::kLargest ? a.priority > b.priority : a.priority < b.priority;
  return a.order < b.order;
}

void HeapSelector::place(std::size_t position, const Entry& entry) {
  entries_[position] = entry;
  positions_[entry.key] = static_cast<std::uint32_t>(position);
}

void HeapSelector::rise(std::size_t position) {
  const Entry entry = entries_[position];
  for (; position > 0 && before(entry, entries_[(position - 1) / 2]); position = (position - 1) / 2)
    place(position, entries_[(position - 1) / 2]);
  place(position, entry);
}

void HeapSelector::sink(std::size_t position) {
  const Entry entry = entries_[position];
  for (;;) {
    std::size_t child = 2 * position + 1;
    if (child >= entries_.size()) break;
    if (child + 1 < entries_.size() && before(entries_[child + 1], entries_[child])) ++child;
    if (!before(entries_[child], entry)) break;
    place(position, entries_[child]);
    position = child;
  }
  place(position, entry);
}

void HeapSelector::insert(Key key, std::optional<double> priority) {
  const float kept = tree_.insert(key, priority ? std::optional(to_mass(*priority)) : std::nullopt);
  if (key >= positions_.size()) positions_.resize(std::size_t{key} + 1);
  entries_.push_back({next_order_++, kept, key});
  rise(entries_.size() - 1);
}

void HeapSelector::erase(Key key) {
  tree_.erase(key);
  const std::size_t hole = positions_[key];
  const Entry last = entries_.back();
  entries_.pop_back();
  if (hole == entries_.size()) return;
  place(hole, last);
  rise(hole);
  sink(positions_[last.key]);
}

void HeapSelector::update(Key key, double priority) {
  const float kept = to_mass(priority);
  tree_.update(key, kept);
  entries_[positions_[key]].priority = kept;
  rise(positions_[key]);
  sink(positions_[key]);
}

Selector::Population HeapSelector::population() const {
  if (entries_.empty()) return {};
  return {static_cast<double>(entries_.size()), 1.0};
}

void HeapSelector::save(ByteWriter& out) const {
  out.put(next_order_);
  out.array(std::span<const Entry>(entries_));
  tree_.save(out);
}

// Strictly ordered, too: no two insertions have the same number.
bool HeapSelector::is_heap(const std::vector<Entry>& entries) const {
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (!before(entries[(i - 1) / 2], entries[i])) return false;
  std::vector<std::uint64_t> orders;
  orders.reserve(entries.size());
  for (const Entry& entry : entries) orders.push_back(entry.order);
  std::sort(orders.begin(), orders.end());
  return std::adjacent_find(orders.begin(), orders.end()) == orders.end();
}

bool HeapSelector::load(ByteReader& in, const std::vector<bool>& live) {
  const auto next_order = in.take<std::uint64_t>();
  std::vector<Entry> entries;
  MassTree tree;
  if (!in.array(entries) || !is_heap(entries) || !tree.load(in, live)) return false;
  std::vector<Key> keys;
  keys.reserve(entries.size());
  for (const Entry& entry : entries) keys.push_back(entry.key);
  if (!are_live_keys(keys, live)) return false;
  for (const Entry& entry : entries)
    if (entry.order >= next_order || entry.priority != tree.mass(entry.key)) return false;
  next_order_ = next_order;
  entries_ = std::move(entries);
  tree_ = std::move(tree);
  positions_.assign(live.size(), 0);
  for (std::size_t i = 0; i < entries_.size(); ++i)
    positions_[entries_[i].key] = static_cast<std::uint32_t>(i);
  return true;
}

}  // namespace troupe::replay
