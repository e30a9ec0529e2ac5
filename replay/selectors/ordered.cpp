// A doubly linked list in an array that the key indexes.
#include "replay/selectors/ordered.hpp"

#include "replay/selectors/saved_keys.hpp"

namespace troupe::replay {

void OrderedSelector::insert(Key key, std::optional<double> /*priority*/) {
  if (key >= links_.size()) links_.resize(std::size_t{key} + 1);
  links_[key] = {newest_, kNone};
  (newest_ == kNone ? oldest_ : links_[newest_].after) = key;
  newest_ = key;
  ++size_;
}

void OrderedSelector::erase(Key key) {
  const Links links = links_[key];
  (links.before == kNone ? oldest_ : links_[links.before].after) = links.after;
  (links.after == kNone ? newest_ : links_[links.after].before) = links.before;
  --size_;
}

Selector::Population OrderedSelector::population() const {
  if (size_ == 0) return {};
  return {static_cast<double>(size_), 1.0};
}

void OrderedSelector::save(ByteWriter& out) const {
  std::vector<Key> keys;
  keys.reserve(size_);
  for (std::uint32_t key = oldest_; key != kNone; key = links_[key].after) keys.push_back(key);
  out.array(std::span<const Key>(keys));
}

bool OrderedSelector::load(ByteReader& in, const std::vector<bool>& live) {
  std::vector<Key> loaded;
  if (!read_keys(in, live, loaded)) return false;
  links_.clear();
  oldest_ = newest_ = kNone;
  size_ = 0;
  for (const Key key : loaded) insert(key, std::nullopt);
  return true;
}

}  // namespace troupe::replay
