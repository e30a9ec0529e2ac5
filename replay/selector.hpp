// How a table chooses among its items: one selector draws samples, another says what is removed
// when the table is full. Keys are the table's slot numbers, so selectors index arrays by them. Not
// thread-safe: the table calls them under its lock. The kinds are in replay/selectors/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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
  // What a learner that draws from several tables needs to know of each of them.
  struct Population {
    double mass = 0;             // by which tables share a draw: sum of p^alpha, else the keys held
    double min_probability = 0;  // smallest one above 0 with which a key would be drawn now
  };

  virtual ~Selector() = default;

  // `key` must not be held. `priority` is finite and >= 0; empty: as high as the highest one that
  // was given, here or to update, to a key that is still held. While none was, what the last such
  // key got; 1 at first. Selectors without priorities ignore it.
  virtual void insert(Key key, std::optional<double> priority) = 0;
  // `key` must be held.
  virtual void erase(Key key) = 0;
  virtual void update(Key key, double priority) = 0;
  // Draws one of the held keys, of which there must be one, and leaves it held. All randomness
  // comes from `random`: the same calls and the same state of it give the same keys.
  virtual Drawn sample(Random& random) = 0;
  // n draws, the same keys as n calls of sample give, appended to `drawn`.
  virtual void sample_many(Random& random, std::size_t n, std::vector<Drawn>& drawn) {
    for (; n > 0; --n) drawn.push_back(sample(random));
  }
  virtual std::size_t size() const = 0;
  virtual std::uint64_t memory_bytes() const = 0;  // of its arrays, as far as they are used
  // O(1); zeros when no key is held.
  virtual Population population() const = 0;
  // Everything that decides what later calls return. load replaces it all; false, with the selector
  // unchanged, when the bytes are not a state that holds exactly the keys k with live[k].
  virtual void save(ByteWriter& out) const = 0;
  virtual bool load(ByteReader& in, const std::vector<bool>& live) = 0;
};

struct SelectorOptions {
  double priority_exponent = 0.6;  // alpha of the prioritised selector, >= 0
  std::size_t expected_keys = 0;   // address space to set aside
};

inline constexpr std::string_view kUniform = "uniform", kPrioritised = "prioritised",
                                  kFifo = "fifo", kLifo = "lifo", kMaxHeap = "max_heap",
                                  kMinHeap = "min_heap";

// Of all selectors, in the order of their listing in messages.
std::span<const std::string_view> selector_names();
// nullptr for a name that is not among them.
std::unique_ptr<Selector> make_selector(std::string_view name, const SelectorOptions& options = {});

}  // namespace troupe::replay
