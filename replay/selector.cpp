// The uniform selector keeps its keys dense; the FIFO selector links them in the order of
// insertion.
#include "replay/selector.hpp"

#include <algorithm>
#include <utility>

namespace troupe::replay {
namespace {

// Keys of a saved selector, in its order: each live key once.
bool read_keys(ByteReader& in, std::vector<bool> live, std::vector<Selector::Key>& out) {
  if (!in.array(out)) return false;
  for (const Selector::Key key : out) {
    if (key >= live.size() || !live[key]) return false;
    live[key] = false;
  }
  return std::find(live.begin(), live.end(), true) == live.end();
}

}  // namespace

void UniformSelector::insert(Key key, double /*priority*/) {
  if (key >= positions_.size()) positions_.resize(std::size_t{key} + 1);
  positions_[key] = static_cast<std::uint32_t>(keys_.size());
  keys_.push_back(key);
}

void UniformSelector::erase(Key key) {
  const std::uint32_t hole = positions_[key];
  keys_[hole] = keys_.back();
  positions_[keys_[hole]] = hole;
  keys_.pop_back();
}

Selector::Drawn UniformSelector::sample(Random& random) {
  return {keys_[random.below(keys_.size())], 1.0 / static_cast<double>(keys_.size())};
}

void UniformSelector::save(ByteWriter& out) const { out.array(std::span<const Key>(keys_)); }

bool UniformSelector::load(ByteReader& in, const std::vector<bool>& live) {
  std::vector<Key> loaded;
  if (!read_keys(in, live, loaded)) return false;
  keys_ = std::move(loaded);
  positions_.assign(live.size(), 0);
  for (std::size_t i = 0; i < keys_.size(); ++i)
    positions_[keys_[i]] = static_cast<std::uint32_t>(i);
  return true;
}

void FifoSelector::insert(Key key, double /*priority*/) {
  if (key >= links_.size()) links_.resize(std::size_t{key} + 1);
  links_[key] = {newest_, kNone};
  (newest_ == kNone ? oldest_ : links_[newest_].after) = key;
  newest_ = key;
  ++size_;
}

void FifoSelector::erase(Key key) {
  const Links links = links_[key];
  (links.before == kNone ? oldest_ : links_[links.before].after) = links.after;
  (links.after == kNone ? newest_ : links_[links.after].before) = links.before;
  --size_;
}

Selector::Drawn FifoSelector::sample(Random& /*random*/) { return {oldest_, 1.0}; }

void FifoSelector::save(ByteWriter& out) const {
  std::vector<Key> keys;
  keys.reserve(size_);
  for (std::uint32_t key = oldest_; key != kNone; key = links_[key].after) keys.push_back(key);
  out.array(std::span<const Key>(keys));
}

bool FifoSelector::load(ByteReader& in, const std::vector<bool>& live) {
  std::vector<Key> loaded;
  if (!read_keys(in, live, loaded)) return false;
  *this = FifoSelector();
  for (const Key key : loaded) insert(key, 1.0);
  return true;
}

std::unique_ptr<Selector> make_selector(std::string_view name) {
  if (name == "uniform") return std::make_unique<UniformSelector>();
  if (name == "fifo") return std::make_unique<FifoSelector>();
  return nullptr;
}

}  // namespace troupe::replay
