// Implements the opening of picture sets.
#include "actors/roles/picture_data.hpp"

#include <algorithm>
#include <limits>

#include "actors/config/checks.hpp"
#include "envs/spec/random.hpp"

namespace troupe::actors {

namespace data = learners::data;

namespace {

tl::unexpected<Error> refuse(const std::string& what) {
  return fail(ErrorCode::kInvalidArgument, "data: " + what);
}

}  // namespace

Result<PictureSet> open_pictures(const RunOptions& options, data::Split split) {
  auto set = data::open_data_set(options.data.set, split);
  if (!set) return fail(set.error().code, "data: " + set.error().message);
  if ((*set)->size() < 1) return refuse("the set at " + options.data.set.path + " is empty");
  return PictureSet(std::move(*set));
}

Result<PictureSets> open_checked_pictures(const RunOptions& options) {
  PictureSets sets;
  for (const auto& [split, set] : {std::pair{data::Split::kTraining, &sets.training},
                                   std::pair{data::Split::kEvaluation, &sets.evaluation}}) {
    auto opened = open_pictures(options, split);
    if (!opened) return tl::unexpected(opened.error());
    *set = std::move(*opened);
  }
  if (sets.training->size() > std::numeric_limits<std::uint32_t>::max())
    return refuse("a training set of more than 2^32 - 1 pictures");
  const auto &classes = sets.training->classes(), &others = sets.evaluation->classes();
  for (std::size_t i = 0; i < std::max(classes.size(), others.size()); ++i)
    if (i >= classes.size() || i >= others.size() || classes[i] != others[i])
      return refuse("class " + std::to_string(i) + " is " +
                    (i < classes.size() ? classes[i] : "not there") + " in the training set, but " +
                    (i < others.size() ? others[i] : "not there") + " in the evaluation set");
  if (sets.training->channels() != sets.evaluation->channels())
    return refuse("the two sets have other numbers of channels");
  const learners::PictureSpec spec = picture_spec(options, *sets.training);
  const RunOptions resolved = with_epochs_as_updates(options, sets.training->size());
  if (options.job == "resnet")
    if (auto good =
            check(resolved.learners.learner.resnet,
                  options.learners.count * options.learners.learner.replicas, spec.channels);
        !good)
      return fail(good.error().code, "resnet." + good.error().message);
  return sets;
}

learners::PictureSpec picture_spec(const RunOptions& options, const data::DataSet& set) {
  return {.side = options.data.augment.size,
          .channels = set.channels(),
          .classes = static_cast<std::int64_t>(set.classes().size())};
}

data::FeedOptions feed_options(const RunOptions& options, const data::DataSet& training,
                               std::uint32_t learner_epoch) {
  const learners::PictureSpec spec = picture_spec(options, training);
  return {.size = training.size(),
          .batch = pictures_per_update(options),
          .ahead = options.learners.learner.prefetch,
          .lease = options.data.lease,
          .epochs = 0,
          .side = static_cast<int>(spec.side),
          .channels = static_cast<int>(spec.channels),
          .classes = spec.classes,
          .learner_epoch = learner_epoch,
          .fingerprint = training.fingerprint()};
}

data::LoaderOptions loader_options(const RunOptions& options, data::Split split) {
  return {.augment = options.data.augment,
          .threads = options.data.threads,
          .training = split == data::Split::kTraining,
          .skip_corrupt = options.data.corrupt == "skip",
          .seed = stream_seed(static_cast<std::uint64_t>(options.seed), "pictures"),
          .window = options.data.window};
}

}  // namespace troupe::actors
