// What an episode file holds: consecutive steps of one episode with where they come from. Plain
// values, free to move between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "envs/spec/spec.hpp"
#include "replay/signature.hpp"

namespace troupe::replay {

// From `row` on, the steps were taken with this version of the policy.
struct PolicySpan {
  std::uint32_t row = 0;
  std::uint64_t parameter_version = 0;
  std::uint32_t learner_epoch = 0;
  bool operator==(const PolicySpan&) const = default;
};

// All that is stored of an episode without a gap, as one chunk whose sequence number means nothing.
//   steps.header.first_step > 0     the head is missing
//   steps.header.end == kContinues  the tail is missing: the last step's next observation is not
//                                   known, so that the step itself ends no item
struct Episode {
  Chunk steps;
  std::vector<PolicySpan> policies;  // by row, the first at row 0

  // Begins with the reset and ends with a termination or truncation.
  bool complete() const { return steps.header.first_step == 0 && steps.header.ends(); }
  bool operator==(const Episode& other) const;
};

// What goes to the head of a file.
struct EpisodeFileHead {
  Signature signature;
  std::string environment{};           // registry name; empty: not known
  std::optional<ActionSpec> action{};  // bounds of the environment's own action, if known
  double discount = 0;                 // of the table that the episodes come from; information
  std::int64_t n_step = 0;             // likewise
};

// Where episodes come from: a file, or a table's cut. One owner, one thread.
class EpisodeSource {
 public:
  virtual ~EpisodeSource() = default;
  virtual std::size_t size() const = 0;
  // Episode `index` < size(). kNotFinite: that one holds NaN or infinity, the others may be good;
  // kCorrupt: the source as a whole is not to be trusted.
  virtual Result<Episode> read(std::size_t index) = 0;
  // Actions are in [-1, 1] per component, as tables store them; otherwise in the environment's own
  // bounds.
  virtual bool actions_in_policy_units() const { return true; }
};

}  // namespace troupe::replay
