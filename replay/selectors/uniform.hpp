// Every held key is equally likely. Owned by a table; see replay/selector.hpp.
#pragma once

#include <vector>

#include "replay/selector.hpp"

namespace troupe::replay {

// All calls O(1); 8 bytes a key.
class UniformSelector final : public Selector {
 public:
  void insert(Key key, std::optional<double> priority) override;
  void erase(Key key) override;
  void update(Key /*key*/, double /*priority*/) override {}
  Drawn sample(Random& random) override;
  std::size_t size() const override { return keys_.size(); }
  Population population() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in, const std::vector<bool>& live) override;

 private:
  std::vector<Key> keys_;                 // the held keys, in no particular order
  std::vector<std::uint32_t> positions_;  // [key] where it stands in keys_
};

}  // namespace troupe::replay
