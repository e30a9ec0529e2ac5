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
#include "learners/supervised/predictor.hpp"

namespace troupe::actors {

class GenerationEvaluation {
 public:
  // Loads the learning library; `threads` compute. Errors name the option.
  static Result<std::unique_ptr<GenerationEvaluation>> open(const RunOptions& options, int threads);

  // {"samples": file, and with a classifier "frechet_distance", "features": its run (never called
  // FID, which is Inception's), "agreement": share of samples that it takes for the class they were
  // made as (of a conditional one), "variance_within_classes" and "real_variance_within_classes",
  // "pictures": how many}. Writes the sheet into `folder`. `keep_going` is asked between batches:
  // false ends it with kUnavailable.
  Result<nlohmann::ordered_json> run(const models::ParameterSet& parameters,
                                     const std::filesystem::path& folder,
                                     const std::function<bool()>& keep_going);

 private:
  struct Statistics;
  GenerationEvaluation(const RunOptions& options, PictureSet set,
                       std::unique_ptr<learners::Sampler> sampler);
  Result<void> open_classifier(int threads);
  Result<std::string> write_sheet(std::uint64_t version, const std::filesystem::path& folder);
  Result<void> judge(Statistics& found, std::span<const std::uint8_t> pixels,
                     std::span<const std::int64_t> labels);
  Result<Statistics> of_samples(const std::function<bool()>& keep_going);
  Result<Statistics> of_real(const std::function<bool()>& keep_going);

  RunOptions options_;
  PictureSet set_;
  learners::PictureSpec spec_;
  std::unique_ptr<learners::Sampler> sampler_;
  std::optional<TrainedModel> classifier_;
  std::unique_ptr<learners::Predictor> predictor_;
  std::int64_t features_ = 0;               // of the classifier
  std::shared_ptr<const Statistics> real_;  // once it was asked for
};

// Pictures as the sampler gives them, u8 [count][side][side][channels], as a PNG with so many in a
// row.
Result<std::vector<std::uint8_t>> sheet(std::span<const std::uint8_t> pixels,
                                        const learners::PictureSpec& spec, int columns);
// One line of a report.
std::string generation_line(const nlohmann::json& report);

}  // namespace troupe::actors
