// Counts a learner's updates that were not finite: one may happen, many in a row are no training.
// Pure; one owner.
#pragma once

#include <cstdint>
#include <string>

#include "envs/spec/result.hpp"

namespace troupe::actors {

class FiniteUpdates {
 public:
  void good() { in_a_row_ = 0; }
  // An update failed with kNotFinite and changed nothing. Whether it is the first since a good one;
  // kNotFinite: it is one too many, and the learner gives up.
  Result<bool> failed(const Error& error) {
    ++failed_;
    if (++in_a_row_ < kMost) return in_a_row_ == 1;
    return fail(ErrorCode::kNotFinite,
                std::to_string(kMost) + " updates in a row were not finite: " + error.message);
  }
  std::uint64_t count() const { return failed_; }

 private:
  static constexpr int kMost = 100;  // in a row
  std::uint64_t failed_ = 0;
  int in_a_row_ = 0;
};

}  // namespace troupe::actors
