// How the pictures of a run are read and cut, as options of the run.
#pragma once

#include <cstdint>
#include <string>

#include "learners/data/augment.hpp"
#include "learners/data/data_set.hpp"

namespace troupe::learners::data {

struct PictureOptions {
  DataOptions set;
  AugmentOptions augment;
  std::string corrupt = "skip";
  std::int64_t lease = 64;
  std::int64_t threads = 1;
  std::int64_t window = 0;
};

template <class Visitor>
void describe(Visitor& visitor, PictureOptions& options) {
  describe(visitor, options.set);
  visitor.group("augment", options.augment, "How pictures are cut for training and evaluation.");
  visitor.choice("corrupt", options.corrupt, {"skip", "fatal"},
                 "A picture that cannot be decoded is named, counted and left out, or ends the "
                 "run.");
  visitor.field("lease", options.lease, between(1, 1 << 20),
                "Pictures that a data actor is given at a time, within one batch.");
  visitor.field("threads", options.threads, between(1, 1024),
                "Threads of each data actor that read, decode and cut.");
  visitor.field("window", options.window, at_least(0),
                "Shuffle only within so many records that lie one after the other, file by file; "
                "0: the whole set.");
}

}  // namespace troupe::learners::data
