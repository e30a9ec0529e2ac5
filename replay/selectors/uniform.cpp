// One random number a draw.
#include "replay/selectors/uniform.hpp"

#include <algorithm>

namespace troupe::replay {

void UniformSelector::insert(Key key, std::optional<double> /*priority*/) { keys_.insert(key); }

Selector::Drawn UniformSelector::sample(Random& random) {
  return {keys_.nth(random.below(keys_.size())), 1.0 / static_cast<double>(keys_.size())};
}

Selector::Population UniformSelector::population() const {
  if (keys_.size() == 0) return {};
  const auto size = static_cast<double>(keys_.size());
  return {size, 1.0 / size};
}

void UniformSelector::save(ByteWriter& out) const {
  out.put(static_cast<std::uint64_t>(keys_.size()));
}

bool UniformSelector::load(ByteReader& in, const std::vector<bool>& live) {
  const auto held = static_cast<std::uint64_t>(std::count(live.begin(), live.end(), true));
  if (in.take<std::uint64_t>() != held || !in.ok()) return false;
  keys_ = KeySet();
  for (std::size_t key = 0; key < live.size(); ++key)
    if (live[key]) keys_.insert(static_cast<Key>(key));
  return true;
}

}  // namespace troupe::replay
