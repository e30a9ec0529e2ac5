// The key of the largest or smallest priority. Owned by a table; see replay/selector.hpp.
#pragma once

#include <vector>

#include "replay/selector.hpp"
#include "replay/selectors/mass_tree.hpp"

namespace troupe::replay {

// The first key of an indexed binary heap, with probability 1. Among equal priorities the one that
// was inserted first comes first; an update does not change that rank. Priorities are kept as
// floats. sample O(1), other calls O(log n); 26 bytes a key.
class HeapSelector final : public Selector {
 public:
  enum class First { kLargest, kSmallest };
  explicit HeapSelector(First first) : first_(first) {}

  void insert(Key key, std::optional<double> priority) override;
  void erase(Key key) override;
  void update(Key key, double priority) override;
  Drawn sample(Random& /*random*/) override { return {entries_.front().key, 1.0}; }
  std::size_t size() const override { return entries_.size(); }
  std::uint64_t memory_bytes() const override {
    return sizeof(Entry) * entries_.size() + sizeof(std::uint32_t) * positions_.size() +
           tree_.memory_bytes();
  }
  Population population() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in, const std::vector<bool>& live) override;

 private:
  struct Entry {
    std::uint64_t order = 0;  // counts insertions
    float priority = 0;
    Key key = 0;
  };
  static_assert(sizeof(Entry) == 16);

  bool before(const Entry& a, const Entry& b) const;
  void place(std::size_t position, const Entry& entry);
  void rise(std::size_t position);
  void sink(std::size_t position);
  bool is_heap(const std::vector<Entry>& entries) const;

  First first_;
  std::vector<Entry> entries_;            // a heap by before()
  std::vector<std::uint32_t> positions_;  // [key] where it stands in entries_
  std::uint64_t next_order_ = 0;
  MassTree tree_;  // knows the highest priority, for keys that come without one
};

}  // namespace troupe::replay
