// One random number a draw, looked up in the tree.
#include "replay/selectors/prioritised.hpp"

#include <cmath>

namespace troupe::replay {

PrioritisedSelector::PrioritisedSelector(const SelectorOptions& options)
    : exponent_(options.priority_exponent) {
  tree_.reserve(options.expected_keys);
}

float PrioritisedSelector::power(double priority) const {
  return to_mass(exponent_ == 1 ? priority : std::pow(priority, exponent_));
}

void PrioritisedSelector::insert(Key key, std::optional<double> priority) {
  tree_.insert(key, priority ? std::optional(power(*priority)) : std::nullopt);
}

Selector::Drawn PrioritisedSelector::sample(Random& random) {
  const double total = tree_.total();
  if (total == 0) {
    const std::size_t held = tree_.held();
    return {tree_.nth(random.below(held)), 1.0 / static_cast<double>(held)};
  }
  const Key key = tree_.find(random.uniform() * total);
  return {key, static_cast<double>(tree_.mass(key)) / total};
}

Selector::Population PrioritisedSelector::population() const {
  if (tree_.held() == 0) return {};
  const double total = tree_.total();
  if (total == 0) return {0, 1.0 / static_cast<double>(tree_.held())};
  return {total, static_cast<double>(tree_.smallest()) / total};
}

}  // namespace troupe::replay
