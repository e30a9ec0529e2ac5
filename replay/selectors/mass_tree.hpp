// A sum tree over priorities, for drawing keys in proportion to them. Owned by a selector; not
// thread-safe.
//
// Leaves are floats, 16 to a node; above them nodes of 8 doubles, one cache line each, up to one
// root. Every inner sum is added up anew from its children, in one fixed order, whenever a leaf
// below it changes, so that no error ever accumulates and the tree is a pure function of its
// leaves. A draw visits one node a level and its leaf: log8(n / 16) + 3 at most, below log2(n) + 2.
// 5.6 bytes a key.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "replay/bytes.hpp"

namespace troupe::replay {

// A priority as the tree holds it: 0 stays 0, others are clamped to the normal floats.
float to_mass(double value);

class MassTree {
 public:
  using Key = std::uint32_t;

  void reserve(std::size_t keys);

  // `key` must not be held, `mass` be a result of to_mass; empty: the highest that was given to a
  // key still held; the last default while none was; 1 at first. Returns the mass. O(log n), as are
  // all calls but those marked.
  float insert(Key key, std::optional<float> mass);
  // `key` must be held. An updated mass counts as given.
  void erase(Key key);
  void update(Key key, float mass);

  float mass(Key key) const { return leaves_[key]; }                        // O(1)
  std::size_t held() const { return levels_.empty() ? 0 : top().held[0]; }  // O(1)
  double total() const { return levels_.empty() ? 0 : top().sum[0]; }       // O(1)
  float smallest() const {
    return levels_.empty() ? 0 : top().smallest[0];
  }  // O(1); > 0, or
     // infinite: none is
  // The key on whose part of [0, total) `target` lies, the parts in the order of the keys; never
  // one without mass. total() must be > 0.
  Key find(double target) const;
  // The same for each of the targets, to keys of the same number: the descents go on together, and
  // what each reads next is on its way while the others are compared.
  void find(std::span<const double> targets, std::span<Key> keys) const;
  // The rank-th of the held keys in their own order, rank < held().
  Key nth(std::size_t rank) const;

  std::uint64_t memory_bytes() const;  // of the nodes and leaves that are used

  // The leaves. load is O(n); false, with the tree unchanged, when the bytes do not hold exactly
  // the keys k with live[k].
  void save(ByteWriter& out) const;
  bool load(ByteReader& in, const std::vector<bool>& live);

  // Counts the nodes and leaves on the paths of all find and nth calls so far, for benchmarks.
  std::uint64_t nodes_visited() const { return visited_; }

 private:
  static constexpr std::size_t kLeaves = 16, kFanOut = 8;
  static constexpr float kFree = -1.0F;  // of a leaf whose key is not held
  // What is known of the leaves below each node of one level.
  struct Level {
    std::vector<double> sum;
    std::vector<float> smallest;  // above 0; infinite: none is
    std::vector<float> highest;   // of those that were given; kFree: none was
    std::vector<std::uint32_t> held;

    std::size_t size() const { return sum.size(); }
    void append();
  };

  const Level& top() const { return levels_.back(); }
  void append_group();
  void set(Key key, float leaf, bool given);
  void sum_leaves(std::size_t group);
  void sum_children(std::size_t level, std::size_t node);

  std::vector<float> leaves_;         // [key], a multiple of kLeaves
  std::vector<std::uint16_t> given_;  // [group of leaves] a bit for each
  std::vector<Level> levels_;         // [0] over groups of leaves; the last one has one node
  float default_ = 1.0F;              // the last one used
  mutable std::uint64_t visited_ = 0;
};

}  // namespace troupe::replay
