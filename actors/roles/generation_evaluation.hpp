// What a generator of pictures is worth: a sheet of samples from the same noise every time, and,
// where a classifier is named, how its features tell samples from real pictures. One owner.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "actors/roles/picture_data.hpp"
#include "actors/roles/trained_model.hpp"
#include "learners/gan/quality.hpp"
#include "learners/gan/sampler.hpp"
#include "learners/gan/script_network.hpp"
#include "learners/supervised/predictor.hpp"

namespace troupe::actors {

class GenerationEvaluation {
 public:
  // Loads the learning library; `threads` compute. Errors name the option.
  static Result<std::unique_ptr<GenerationEvaluation>> open(const RunOptions& options, int threads);

  // {"samples": file,
  //  with a network (sngan.features, or else sngan.classifier): "frechet_distance" in its features
  //  and "features": its file or run, by which the figure goes (FID is only Inception's); where it
  //  gives classes, "inception_score" and "inception_score_deviation" over parts, by its classes;
  //  with a classifier: "agreement", the share of samples that it takes for the class they were
  //  made as (of a conditional generator); with a network or sngan.collapse_share:
  //  "variance_within_classes" and "real_variance_within_classes" of pixels (of a generator without
  //  classes: over all pictures), "variance_share" of the two, "collapsed": whether that is below
  //  collapse_share, "pictures": how many}.
  // Writes the sheet into `folder`. `keep_going` is asked between batches: false ends it with
  // kUnavailable.
  Result<nlohmann::ordered_json> run(const models::ParameterSet& parameters,
                                     const std::filesystem::path& folder,
                                     const std::function<bool()>& keep_going);

 private:
  struct Statistics;
  GenerationEvaluation(const RunOptions& options, PictureSet set,
                       std::unique_ptr<learners::Sampler> sampler);
  Result<void> open_classifier(int threads);
  Result<void> open_script(int threads);
  Result<std::string> write_sheet(std::uint64_t version, const std::filesystem::path& folder);
  Result<void> judge(Statistics& found, std::span<const std::uint8_t> pixels,
                     std::span<const std::int64_t> labels);
  Result<Statistics> of_samples(const std::function<bool()>& keep_going);
  Result<Statistics> of_real(const std::function<bool()>& keep_going);
  Result<void> add_quality(const Statistics& samples, nlohmann::ordered_json& report) const;

  RunOptions options_;
  PictureSet set_;
  learners::PictureSpec spec_;
  std::unique_ptr<learners::Sampler> sampler_;
  std::optional<TrainedModel> classifier_;
  std::unique_ptr<learners::Predictor> predictor_;
  std::unique_ptr<learners::PictureNetwork> script_;
  std::int64_t features_ = 0;               // of the network that judges; 0: none does
  std::shared_ptr<const Statistics> real_;  // once it was asked for
};

// Pictures as the sampler gives them, u8 [count][side][side][channels], as a PNG with so many in a
// row.
Result<std::vector<std::uint8_t>> sheet(std::span<const std::uint8_t> pixels,
                                        const learners::PictureSpec& spec, int columns);
// One line of a report.
std::string generation_line(const nlohmann::json& report);

}  // namespace troupe::actors
