// First in, first out; and last in, first out. Owned by a table; see replay/selector.hpp.
#pragma once

#include <vector>

#include "replay/selector.hpp"

namespace troupe::replay {

// Links the keys in the order of insertion. All calls O(1); 8 bytes a key.
class OrderedSelector : public Selector {
 public:
  void insert(Key key, std::optional<double> priority) override;
  void erase(Key key) override;
  void update(Key /*key*/, double /*priority*/) override {}
  std::size_t size() const override { return size_; }
  Population population() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in, const std::vector<bool>& live) override;

 protected:
  Key oldest() const { return oldest_; }
  Key newest() const { return newest_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Links {
    std::uint32_t before = kNone, after = kNone;
  };
  std::vector<Links> links_;  // [key]
  std::uint32_t oldest_ = kNone, newest_ = kNone;
  std::size_t size_ = 0;
};

// The key inserted first, with probability 1.
class FifoSelector final : public OrderedSelector {
 public:
  Drawn sample(Random& /*random*/) override { return {oldest(), 1.0}; }
};

// The key inserted last, with probability 1.
class LifoSelector final : public OrderedSelector {
 public:
  Drawn sample(Random& /*random*/) override { return {newest(), 1.0}; }
};

}  // namespace troupe::replay
