// Keeps the keys dense: a draw is one index.
#include "replay/selectors/uniform.hpp"

#include <utility>

#include "replay/selectors/saved_keys.hpp"

namespace troupe::replay {

void UniformSelector::insert(Key key, std::optional<double> /*priority*/) {
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

Selector::Population UniformSelector::population() const {
  if (keys_.empty()) return {};
  const auto size = static_cast<double>(keys_.size());
  return {size, 1.0 / size};
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

}  // namespace troupe::replay
