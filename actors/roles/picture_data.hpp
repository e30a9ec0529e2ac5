// From a run's options to its labelled pictures. Thread-safe like the sets it opens.
#pragma once

#include <memory>

#include "actors/config/run_options.hpp"
#include "learners/data/loader.hpp"
#include "learners/data/picture_feed.hpp"

namespace troupe::actors {

using PictureSet = std::shared_ptr<const learners::data::DataSet>;

// Errors begin with the option to mend: "data: ...". O(records) for folders and tar files, the
// whole file for idx.
Result<PictureSet> open_pictures(const RunOptions& options, learners::data::Split split);

// Both, checked against each other and the options: kInvalidArgument for sets without pictures, of
// different classes or channels, and for what a network of these options cannot learn from.
struct PictureSets {
  PictureSet training, evaluation;
};
Result<PictureSets> open_checked_pictures(const RunOptions& options);

learners::PictureSpec picture_spec(const RunOptions& options, const learners::data::DataSet& set);
// `learner_epoch`: of the learner that leases.
learners::data::FeedOptions feed_options(const RunOptions& options,
                                         const learners::data::DataSet& training,
                                         std::uint32_t learner_epoch);
learners::data::LoaderOptions loader_options(const RunOptions& options,
                                             learners::data::Split split);

}  // namespace troupe::actors
