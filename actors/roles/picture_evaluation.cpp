// Implements evaluation on a set.
#include "actors/roles/picture_evaluation.hpp"

#include <algorithm>

#include "actors/roles/classification_report.hpp"
#include "learners/loader.hpp"

namespace troupe::actors {

namespace data = learners::data;

namespace {

constexpr std::int64_t kBatch = 100, kAhead = 2;  // pictures at a time, and how many such

}  // namespace

Result<std::unique_ptr<PictureEvaluation>> PictureEvaluation::open(const RunOptions& options,
                                                                   int threads) {
  auto set = open_pictures(options, data::Split::kEvaluation);
  if (!set) return tl::unexpected(set.error());
  const auto make = learners::load_predictor();
  if (!make) return tl::unexpected(make.error());
  auto predictor = (*make)(options.learners.learner.resnet, picture_spec(options, **set), threads);
  if (!predictor) return tl::unexpected(predictor.error());
  return std::unique_ptr<PictureEvaluation>(
      new PictureEvaluation(std::move(*set), options, std::move(*predictor)));
}

Result<nlohmann::ordered_json> PictureEvaluation::run(const models::ParameterSet& parameters,
                                                      const std::function<bool()>& keep_going) {
  if (auto taken = predictor_->set_parameters(parameters); !taken)
    return tl::unexpected(taken.error());
  data::Loader loader(set_, loader_options(options_, data::Split::kEvaluation));
  learners::Classification counted(static_cast<std::int64_t>(set_->classes().size()));
  std::uint64_t corrupt = 0;
  std::int64_t asked = 0;
  while (true) {
    while (asked < set_->size() && static_cast<std::int64_t>(loader.pending()) < kAhead) {
      const std::int64_t end = std::min(set_->size(), asked + kBatch);
      loader.request(0, asked, end);
      asked = end;
    }
    if (loader.pending() == 0) break;
    if (!keep_going()) return fail(ErrorCode::kUnavailable, "the evaluation was broken off");
    const auto pictures = loader.next();
    if (!pictures) return tl::unexpected(pictures.error());
    corrupt += pictures->corrupt.size();
    if (pictures->size() == 0) continue;
    const auto outputs = predictor_->outputs(pictures->pixels);
    if (!outputs) return tl::unexpected(outputs.error());
    if (auto added = counted.add(outputs->logits, pictures->labels); !added)
      return tl::unexpected(added.error());
  }
  return classification_json(counted, set_->classes(), corrupt);
}

}  // namespace troupe::actors
