// Which steps make an item: n-step transitions, sequences of a fixed length, or whole episodes.
// Plain values.
#pragma once

#include <cstdint>

#include "envs/spec/result.hpp"

namespace troupe::replay {

struct ItemShape {
  enum class Kind : std::uint8_t {
    kNStep,     // one item per step, of at most `length` steps (see item_builder.hpp)
    kSequence,  // one item every `period` steps of an episode, of `length` steps
    kEpisode,   // one item per episode of at most `length` steps; longer ones are dropped and
                // counted
  };
  // How the end of an episode that fills no whole sequence is treated.
  enum class Tail : std::uint8_t {
    kPad,   // a shorter item, padded in batches, if it holds a step that no sequence before it does
    kDrop,  // its steps are dropped and counted
  };
  Kind kind = Kind::kNStep;
  std::uint32_t length = 1;  // steps, 1 to 65535
  // Of sequences only, refused for others:
  std::uint32_t period = 1;      // 1 to length: two sequences overlap by length - period steps
  std::uint32_t burn_in = 0;     // below length: steps at the start whose mask is 0 in batches
  bool across_episodes = false;  // sequences go on over the ends of episodes, which are then marked
  Tail tail = Tail::kPad;        // without effect across episodes

  // Fixed length in batches, with a time axis.
  bool is_span() const { return kind != Kind::kNStep; }
  bool operator==(const ItemShape&) const = default;
};

// kInvalidArgument naming the field that is out of range.
Result<void> check_item_shape(const ItemShape& shape);

}  // namespace troupe::replay
