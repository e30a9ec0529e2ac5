// Checking the keys of a saved selector. Pure; used by the selectors' load.
#pragma once

#include <vector>

#include "replay/selector.hpp"

namespace troupe::replay {

// Whether `keys` names each live key once and no other.
bool are_live_keys(const std::vector<Selector::Key>& keys, std::vector<bool> live);

}  // namespace troupe::replay
