// First in, first out; and last in, first out. Owned by a table; see replay/selector.hpp.
#pragma once

#include <deque>
#include <vector>

#include "replay/selector.hpp"

namespace troupe::replay {

// The keys in the order of insertion. A table hands out and takes back its slots in order, so they
// are kept as runs of successive keys: next to nothing a key. Once a key leaves from the middle,
// the keys are linked instead: 8 bytes a key. All calls O(1), but the one that begins the linking.
class OrderedSelector : public Selector {
 public:
  void insert(Key key, std::optional<double> priority) override;
  void erase(Key key) override;
  void update(Key /*key*/, double /*priority*/) override {}
  std::size_t size() const override { return size_; }
  std::uint64_t memory_bytes() const override;
  Population population() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in, const std::vector<bool>& live) override;

 protected:
  Key oldest() const { return linked() ? oldest_ : runs_.front().first; }
  Key newest() const { return linked() ? newest_ : runs_.back().last(); }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Run {
    Key first = 0;
    std::uint32_t count = 0;
    Key last() const { return first + count - 1; }
  };
  struct Links {
    std::uint32_t before = kNone, after = kNone;
  };
  bool linked() const { return !links_.empty(); }
  void link(Key key);
  void link_all();
  static void extend(std::deque<Run>& runs, Key key);

  std::deque<Run> runs_;      // oldest first; empty when linked
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
