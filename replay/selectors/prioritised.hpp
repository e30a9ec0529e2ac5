// Draws in proportion to a power of the priority (Schaul, Quan, Antonoglou, Silver, Prioritized
// Experience Replay, 2016, 3.3, the proportional variant). Owned by a table; see
// replay/selector.hpp.
#pragma once

#include <vector>

#include "replay/selector.hpp"
#include "replay/selectors/mass_tree.hpp"

namespace troupe::replay {

// P(key) = p^alpha / sum p^alpha. A key of priority 0 is never drawn while one above 0 is held;
// when all are 0, all are equally likely. Powers are kept as floats, between the smallest and the
// largest normal one. O(log n) a call, 5.6 bytes a key.
class PrioritisedSelector final : public Selector {
 public:
  explicit PrioritisedSelector(const SelectorOptions& options);

  void insert(Key key, std::optional<double> priority) override;
  void erase(Key key) override { tree_.erase(key); }
  void update(Key key, double priority) override { tree_.update(key, power(priority)); }
  Drawn sample(Random& random) override;
  void sample_many(Random& random, std::size_t n, std::vector<Drawn>& drawn) override;
  std::size_t size() const override { return tree_.held(); }
  std::uint64_t memory_bytes() const override { return tree_.memory_bytes(); }
  Population population() const override;
  void save(ByteWriter& out) const override { tree_.save(out); }
  bool load(ByteReader& in, const std::vector<bool>& live) override { return tree_.load(in, live); }

  const MassTree& tree() const { return tree_; }

 private:
  float power(double priority) const;

  double exponent_;
  MassTree tree_;
  std::vector<double> targets_;  // scratch of sample_many
  std::vector<Key> keys_;
};

}  // namespace troupe::replay
