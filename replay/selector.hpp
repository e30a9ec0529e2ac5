// How a table chooses among its items: one selector draws samples, another says what is removed
// when the table is full. Keys are the table's slot numbers, so selectors index arrays by them. Not
// thread-safe: the table calls them under its lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "envs/spec/random.hpp"
#include "envs/spec/result.hpp"
#include "replay/bytes.hpp"

namespace troupe::replay {

class Selector {
 public:
  using Key = std::uint32_t;
  struct Drawn {
    Key key = 0;
    double probability = 0;  // with which this key was drawn, for importance weights
  };

  virtual ~Selector() = default;

  // `key` must not be held. `priority` >= 0 and finite; selectors without priorities ignore it.
  virtual void insert(Key key, double priority) = 0;
  // `key` must be held.
  virtual void erase(Key key) = 0;
  virtual void update(Key key, double priority) = 0;
  // Draws one of the held keys, of which there must be one, and leaves it held. All randomness
  // comes from `random`: the same calls and the same state of it give the same keys.
  virtual Drawn sample(Random& random) = 0;
  virtual std::size_t size() const = 0;
  // Everything that decides what later calls return. load replaces it all; false, with the selector
  // unchanged, when the bytes are not a state that holds exactly the keys k with live[k].
  virtual void save(ByteWriter& out) const = 0;
  virtual bool load(ByteReader& in, const std::vector<bool>& live) = 0;
};

// Every held key is equally likely. All calls O(1); 8 bytes a key.
class UniformSelector final : public Selector {
 public:
  void insert(Key key, double priority) override;
  void erase(Key key) override;
  void update(Key /*key*/, double /*priority*/) override {}
  Drawn sample(Random& random) override;
  std::size_t size() const override { return keys_.size(); }
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in, const std::vector<bool>& live) override;

 private:
  std::vector<Key> keys_;                 // the held keys, in no particular order
  std::vector<std::uint32_t> positions_;  // [key] where it stands in keys_
};

// The key inserted first, with probability 1. All calls O(1); 8 bytes a key.
class FifoSelector final : public Selector {
 public:
  void insert(Key key, double priority) override;
  void erase(Key key) override;
  void update(Key /*key*/, double /*priority*/) override {}
  Drawn sample(Random& random) override;
  std::size_t size() const override { return size_; }
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in, const std::vector<bool>& live) override;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Links {
    std::uint32_t before = kNone, after = kNone;
  };
  std::vector<Links> links_;  // [key]
  std::uint32_t oldest_ = kNone, newest_ = kNone;
  std::size_t size_ = 0;
};

// "uniform" or "fifo"; nullptr for another name.
std::unique_ptr<Selector> make_selector(std::string_view name);

}  // namespace troupe::replay
