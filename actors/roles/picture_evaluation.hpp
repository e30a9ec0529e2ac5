// A classifier's evaluation on the whole evaluation set, cut in the same way every time. One owner.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "actors/roles/picture_data.hpp"
#include "learners/supervised/predictor.hpp"

namespace troupe::actors {

class PictureEvaluation {
 public:
  // Loads the learning library; `threads` compute.
  static Result<std::unique_ptr<PictureEvaluation>> open(const RunOptions& options, int threads);

  // classification_json of these parameters. `keep_going` is asked between batches: false ends it
  // with kUnavailable. Errors name the picture or the array.
  Result<nlohmann::ordered_json> run(const models::ParameterSet& parameters,
                                     const std::function<bool()>& keep_going);
  const learners::data::DataSet& set() const { return *set_; }

 private:
  PictureEvaluation(PictureSet set, const RunOptions& options,
                    std::unique_ptr<learners::Predictor> predictor)
      : set_(std::move(set)), options_(options), predictor_(std::move(predictor)) {}

  PictureSet set_;
  RunOptions options_;
  std::unique_ptr<learners::Predictor> predictor_;
};

}  // namespace troupe::actors
