// Growth goes one group of leaves at a time, so that no insert pays for more than its path.
#include "replay/selectors/mass_tree.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace troupe::replay {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// Which of `count` children holds the part of their sum on which `target` lies; what is left of the
// target within that child goes to `target`. Where rounding leaves the target behind the last one,
// that is the last child above 0: there is one, since their sum is above 0.
template <class Value>
std::size_t pick(const Value* children, std::size_t count, double& target) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto mass = static_cast<double>(children[i]);
    if (!(mass > 0)) continue;
    if (target < mass) return i;
    target -= mass;
    last = i;
  }
  target = std::nextafter(static_cast<double>(children[last]), 0.0);
  return last;
}

}  // namespace

float to_mass(double value) {
  if (!(value > 0)) return 0;
  return static_cast<float>(std::clamp(value,
                                       static_cast<double>(std::numeric_limits<float>::min()),
                                       static_cast<double>(std::numeric_limits<float>::max())));
}

void MassTree::Level::append() {
  sum.push_back(0);
  smallest.push_back(kInfinite);
  highest.push_back(kFree);
  held.push_back(0);
}

void MassTree::reserve(std::size_t keys) {
  leaves_.reserve((keys + kLeaves - 1) / kLeaves * kLeaves);
  given_.reserve((keys + kLeaves - 1) / kLeaves);
}

void MassTree::append_group() {
  leaves_.resize(leaves_.size() + kLeaves, kFree);
  given_.push_back(0);
  std::size_t needed = given_.size();
  for (std::size_t level = 0;; ++level) {
    const bool is_new = level == levels_.size();
    if (is_new) levels_.emplace_back();
    while (levels_[level].size() < needed) levels_[level].append();
    if (is_new && level > 0) sum_children(level, 0);
    if (needed == 1) break;
    needed = (needed + kFanOut - 1) / kFanOut;
  }
}

float MassTree::insert(Key key, std::optional<float> mass) {
  while (key >= leaves_.size()) append_group();
  if (!mass) {
    const float highest = top().highest[0];
    if (highest >= 0) default_ = highest;
  }
  const float used = mass.value_or(default_);
  set(key, used, mass.has_value());
  return used;
}

void MassTree::erase(Key key) { set(key, kFree, false); }

void MassTree::update(Key key, float mass) { set(key, mass, true); }

void MassTree::set(Key key, float leaf, bool given) {
  const auto bit = static_cast<std::uint16_t>(1U << key % kLeaves);
  std::size_t node = key / kLeaves;
  leaves_[key] = leaf;
  given_[node] = static_cast<std::uint16_t>(given ? given_[node] | bit : given_[node] & ~bit);
  sum_leaves(node);
  for (std::size_t level = 1; level < levels_.size(); ++level) sum_children(level, node /= kFanOut);
}

void MassTree::sum_leaves(std::size_t group) {
  const float* leaves = leaves_.data() + group * kLeaves;
  const std::uint16_t given = given_[group];
  double even = 0, odd = 0;  // two chains of additions run at once
  float smallest = kInfinite, highest = kFree;
  std::uint32_t held = 0;
  for (std::size_t i = 0; i < kLeaves; ++i) {
    const float leaf = leaves[i];
    (i % 2 == 0 ? even : odd) += static_cast<double>(std::max(leaf, 0.0F));
    smallest = std::min(smallest, leaf > 0 ? leaf : kInfinite);
    highest = std::max(highest, (given >> i & 1) != 0 ? leaf : kFree);
    held += leaf >= 0 ? 1 : 0;
  }
  Level& level = levels_.front();
  level.sum[group] = even + odd;
  level.smallest[group] = smallest;
  level.highest[group] = highest;
  level.held[group] = held;
}

void MassTree::sum_children(std::size_t level, std::size_t node) {
  const Level& below = levels_[level - 1];
  const std::size_t first = node * kFanOut, end = std::min(first + kFanOut, below.size());
  double sum = 0;
  float smallest = kInfinite, highest = kFree;
  std::uint32_t held = 0;
  for (std::size_t i = first; i < end; ++i) {
    sum += below.sum[i];
    smallest = std::min(smallest, below.smallest[i]);
    highest = std::max(highest, below.highest[i]);
    held += below.held[i];
  }
  Level& own = levels_[level];
  own.sum[node] = sum;
  own.smallest[node] = smallest;
  own.highest[node] = highest;
  own.held[node] = held;
}

MassTree::Key MassTree::find(double target) const {
  std::size_t node = 0;
  for (std::size_t level = levels_.size() - 1; level > 0; --level) {
    const std::vector<double>& below = levels_[level - 1].sum;
    const std::size_t first = node * kFanOut;
    node = first + pick(below.data() + first, std::min(kFanOut, below.size() - first), target);
  }
  visited_ += levels_.size() + 1;
  return static_cast<Key>(node * kLeaves + pick(leaves_.data() + node * kLeaves, kLeaves, target));
}

void MassTree::find(std::span<const double> targets, std::span<Key> keys) const {
  constexpr std::size_t kTogether = 16;
  std::array<double, kTogether> left{};
  std::array<std::size_t, kTogether> nodes{};
  for (std::size_t begin = 0; begin < targets.size(); begin += kTogether) {
    const std::size_t count = std::min(kTogether, targets.size() - begin);
    std::copy_n(targets.begin() + static_cast<std::ptrdiff_t>(begin), count, left.begin());
    nodes.fill(0);
    for (std::size_t level = levels_.size() - 1; level > 0; --level) {
      const std::vector<double>& below = levels_[level - 1].sum;
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t first = nodes[i] * kFanOut;
        nodes[i] =
            first + pick(below.data() + first, std::min(kFanOut, below.size() - first), left[i]);
        if (level > 1)
          __builtin_prefetch(levels_[level - 2].sum.data() + nodes[i] * kFanOut);
        else
          __builtin_prefetch(leaves_.data() + nodes[i] * kLeaves);
      }
    }
    for (std::size_t i = 0; i < count; ++i)
      keys[begin + i] = static_cast<Key>(
          nodes[i] * kLeaves + pick(leaves_.data() + nodes[i] * kLeaves, kLeaves, left[i]));
    visited_ += count * (levels_.size() + 1);
  }
}

MassTree::Key MassTree::nth(std::size_t rank) const {
  std::size_t node = 0;
  for (std::size_t level = levels_.size() - 1; level > 0; --level) {
    const std::vector<std::uint32_t>& below = levels_[level - 1].held;
    node *= kFanOut;
    while (rank >= below[node]) rank -= below[node++];
  }
  visited_ += levels_.size() + 1;
  std::size_t key = node * kLeaves;
  while (leaves_[key] < 0 || rank-- > 0) ++key;
  return static_cast<Key>(key);
}

std::uint64_t MassTree::memory_bytes() const {
  std::uint64_t total = sizeof(float) * leaves_.size() + sizeof(std::uint16_t) * given_.size();
  for (const Level& level : levels_)
    total += level.size() * (sizeof(double) + 2 * sizeof(float) + sizeof(std::uint32_t));
  return total;
}

void MassTree::save(ByteWriter& out) const {
  out.put(default_);
  out.array(std::span<const float>(leaves_));
  out.array(std::span<const std::uint16_t>(given_));
}

bool MassTree::load(ByteReader& in, const std::vector<bool>& live) {
  MassTree loaded;
  std::vector<float> leaves;
  std::vector<std::uint16_t> given;
  in.get(loaded.default_);
  if (!in.array(leaves) || !in.array(given)) return false;
  if (!std::isfinite(loaded.default_) || loaded.default_ < 0) return false;
  if (leaves.size() != given.size() * kLeaves || leaves.size() < live.size()) return false;
  for (std::size_t key = 0; key < leaves.size(); ++key) {
    const bool held = key < live.size() && live[key];
    const bool is_given = (given[key / kLeaves] >> key % kLeaves & 1) != 0;
    if (held ? !std::isfinite(leaves[key]) || leaves[key] < 0 : leaves[key] != kFree || is_given)
      return false;
  }
  for (std::size_t group = 0; group < given.size(); ++group) loaded.append_group();
  loaded.leaves_ = std::move(leaves);
  loaded.given_ = std::move(given);
  for (std::size_t group = 0; group < loaded.given_.size(); ++group) loaded.sum_leaves(group);
  for (std::size_t level = 1; level < loaded.levels_.size(); ++level)
    for (std::size_t node = 0; node < loaded.levels_[level].size(); ++node)
      loaded.sum_children(level, node);
  *this = std::move(loaded);
  return true;
}

}  // namespace troupe::replay
