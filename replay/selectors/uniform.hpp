// Every held key is equally likely. Owned by a table; see replay/selector.hpp.
#pragma once

#include "replay/selector.hpp"
#include "replay/selectors/key_set.hpp"

namespace troupe::replay {

// A draw is a rank among the held keys: O(1) while they are 0 to n - 1, as in a table that is full
// or has removed nothing, else O(log n). 0.14 bytes a key.
class UniformSelector final : public Selector {
 public:
  void insert(Key key, std::optional<double> priority) override;
  void erase(Key key) override { keys_.erase(key); }
  void update(Key /*key*/, double /*priority*/) override {}
  Drawn sample(Random& random) override;
  std::size_t size() const override { return keys_.size(); }
  std::uint64_t memory_bytes() const override { return keys_.memory_bytes(); }
  Population population() const override;
  // Which keys are held says all: only their number is written.
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in, const std::vector<bool>& live) override;

 private:
  KeySet keys_;
};

}  // namespace troupe::replay
