// The replicas of a learner from pictures, alone or in a group of learners that apply every update
// together: who has which rows of a batch, how batches come from rank 0 to the others, and how all
// come to one state. Belongs to the learner's thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "learners/data/picture_batch.hpp"
#include "learners/learner.hpp"
#include "learners/replicas/replicator.hpp"
#include "learners/supervised/picture_rows.hpp"

namespace troupe::learners {

class PictureTeam {
 public:
  PictureTeam(const LearnerOptions& placement, const PictureSpec& pictures)
      : placement_(placement), pictures_(pictures) {}

  // Leaves the group that it is in, and waits for the members of that one, no longer than
  // placement.timeout. After an error it is in none.
  Result<void> form(const LearnerGroup& group);
  // Into no group: an error came of what followed form().
  void disband() { replicator_.reset(); }

  // One step of every replica; kUnavailable between two groups.
  Result<void> step(const LocalReplicas::Work& work);
  // Whether update `version` is one after which groups compare their states, as they do every 100.
  bool compares(std::uint64_t version) const { return group_.size > 1 && version % 100 == 0; }
  // kInternal on every replica when the hashes of their states differ.
  Result<void> compare(std::uint64_t version, const std::function<std::uint64_t(int)>& hash_of);

  // What the replicas of this learner hold: first what is equal on all, which is taken in place,
  // then what each has of its own, which is replaced (batch statistics, vectors of spectral norms).
  struct States {
    std::uint64_t updates = 0;                   // of the first replica, as `place` is
    std::vector<std::vector<at::Tensor>> equal;  // [replica][tensor]
    std::vector<std::vector<at::Tensor>*> own;   // [replica][tensor]
    std::vector<std::int64_t> counters;          // of the learner
  };
  // All learners of the group, those that went on included, take place, counters and the first
  // replica's state of the lowest rank with most updates; replica i takes what that learner's
  // replica i has of its own. After an error `states` are as they were.
  Result<void> agree(States& states);

  // As Learner::share.
  Result<const data::PictureBatch*> share(const data::PictureBatch* batch);

  int local() const { return static_cast<int>(placement_.replicas); }
  int replicas() const { return group_.size * local(); }
  // The part of the group's rows that this learner's replica `index` has.
  PictureRows part_of(const PictureRows& rows, int index) const {
    return rows.part_of(replicas(), group_.rank * local() + index);
  }

  data::DataPlace place;  // goes with the states

 private:
  const LearnerOptions& placement_;
  const PictureSpec& pictures_;
  LearnerGroup group_;  // of one learner while it trains alone
  data::PictureBatch shared_;
  std::unique_ptr<Replicator> replicator_;  // last: its threads end before what they use
};

}  // namespace troupe::learners
