// Compares saved keys with the live ones.
#include "replay/selectors/saved_keys.hpp"

#include <algorithm>

namespace troupe::replay {

bool are_live_keys(const std::vector<Selector::Key>& keys, std::vector<bool> live) {
  for (const Selector::Key key : keys) {
    if (key >= live.size() || !live[key]) return false;
    live[key] = false;
  }
  return std::find(live.begin(), live.end(), true) == live.end();
}

}  // namespace troupe::replay
