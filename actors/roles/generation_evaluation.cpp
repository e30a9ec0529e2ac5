// Implements the judging of samples.
#include "actors/roles/generation_evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "actors/config/checks.hpp"
#include "envs/spec/files.hpp"
#include "envs/spec/random.hpp"
#include "learners/loader.hpp"

namespace troupe::actors {

namespace data = learners::data;

namespace {

constexpr std::int64_t kBatch = 100;                   // pictures at a time
constexpr std::int64_t kMostRows = 10, kColumns = 10;  // of the sheet
// The Inception score is that of ten parts, as it is always given, but of no part with fewer
// pictures.
constexpr std::int64_t kMostParts = 10, kFewest = 100;

std::vector<float> noise_of(std::int64_t count, std::int64_t width, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> noise(static_cast<std::size_t>(count * width));
  for (float& value : noise) value = static_cast<float>(random.normal());
  return noise;
}

// Appends softmax(logits), row by row; nothing for a network without logits.
void add_probabilities(const learners::PictureNetwork::Outputs& outputs, std::vector<float>& to) {
  const std::size_t width = outputs.logits.size() / static_cast<std::size_t>(outputs.count);
  for (std::size_t at = 0; at < outputs.logits.size(); at += width) {
    const auto logits = std::span(outputs.logits).subspan(at, width);
    const float largest = *std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit - largest));
    for (const float logit : logits)
      to.push_back(static_cast<float>(std::exp(static_cast<double>(logit - largest)) / total));
  }
}

// The middle of each picture: what a classifier of smaller pictures looks at.
std::vector<std::uint8_t> middles(std::span<const std::uint8_t> pixels, std::int64_t side,
                                  std::int64_t smaller, std::int64_t channels) {
  if (side == smaller) return {pixels.begin(), pixels.end()};
  const std::int64_t edge = (side - smaller) / 2, picture = side * side * channels;
  std::vector<std::uint8_t> out;
  for (std::int64_t p = 0; p < static_cast<std::int64_t>(pixels.size()) / picture; ++p)
    for (std::int64_t y = 0; y < smaller; ++y) {
      const auto row = pixels.subspan(
          static_cast<std::size_t>(p * picture + ((y + edge) * side + edge) * channels),
          static_cast<std::size_t>(smaller * channels));
      out.insert(out.end(), row.begin(), row.end());
    }
  return out;
}

}  // namespace

struct GenerationEvaluation::Statistics {
  // `feature_count` 0: no network judges.
  Statistics(std::int64_t feature_count, std::int64_t classes, std::int64_t pixels)
      : features(feature_count), variance(classes, pixels) {}
  learners::FeatureStatistics features;
  learners::IntraClassVariance variance;
  std::vector<float> probabilities;  // [count][classes of the network]
  std::int64_t right = 0, count = 0;
};

GenerationEvaluation::GenerationEvaluation(const RunOptions& options, PictureSet set,
                                           std::unique_ptr<learners::Sampler> sampler)
    : options_(options),
      set_(std::move(set)),
      spec_(picture_spec(options_, *set_)),
      sampler_(std::move(sampler)) {}

Result<std::unique_ptr<GenerationEvaluation>> GenerationEvaluation::open(const RunOptions& options,
                                                                         int threads) {
  auto set = open_pictures(options, data::Split::kTraining);
  if (!set) return tl::unexpected(set.error());
  const auto make = learners::load_sampler();
  if (!make) return tl::unexpected(make.error());
  auto sampler = (*make)(options.learners.learner.sngan, picture_spec(options, **set), threads);
  if (!sampler) return tl::unexpected(sampler.error());
  std::unique_ptr<GenerationEvaluation> evaluation(
      new GenerationEvaluation(options, std::move(*set), std::move(*sampler)));
  if (!options.learners.learner.sngan.classifier.empty())
    if (auto opened = evaluation->open_classifier(threads); !opened)
      return fail(opened.error().code, "sngan.classifier: " + opened.error().message);
  if (!options.learners.learner.sngan.features.empty())
    if (auto opened = evaluation->open_script(threads); !opened)
      return fail(opened.error().code, "sngan.features: " + opened.error().message);
  return evaluation;
}

Result<void> GenerationEvaluation::open_script(int threads) {
  const auto load = learners::load_script_loader();
  if (!load) return tl::unexpected(load.error());
  auto network = (*load)(options_.learners.learner.sngan.features, spec_, threads);
  if (!network) return tl::unexpected(network.error());
  script_ = std::move(*network);
  const std::vector<std::uint8_t> black(
      static_cast<std::size_t>(spec_.side * spec_.side * spec_.channels));
  return script_->outputs(black).map([this](const learners::PictureNetwork::Outputs& outputs) {
    features_ = static_cast<std::int64_t>(outputs.features.size());
  });
}

Result<void> GenerationEvaluation::open_classifier(int threads) {
  auto found = load_trained(options_.learners.learner.sngan.classifier, "resnet");
  if (!found) return tl::unexpected(found.error());
  classifier_ = std::move(*found);
  const learners::PictureSpec& theirs = classifier_->pictures;
  if (theirs.channels != spec_.channels || theirs.classes != spec_.classes ||
      theirs.side > spec_.side)
    return fail(ErrorCode::kInvalidArgument,
                "it sees " + std::to_string(theirs.side) + " pixels, " +
                    std::to_string(theirs.channels) + " channels and " +
                    std::to_string(theirs.classes) + " classes, but pictures here have " +
                    std::to_string(spec_.side) + ", " + std::to_string(spec_.channels) + " and " +
                    std::to_string(spec_.classes));
  const auto make = learners::load_predictor();
  if (!make) return tl::unexpected(make.error());
  auto predictor = (*make)(classifier_->options.learners.learner.resnet, theirs, threads);
  if (!predictor) return tl::unexpected(predictor.error());
  predictor_ = std::move(*predictor);
  if (auto taken = predictor_->set_parameters(*classifier_->parameters); !taken) return taken;
  const std::vector<std::uint8_t> black(
      static_cast<std::size_t>(theirs.side * theirs.side * theirs.channels));
  return predictor_->outputs(black).map([this](const learners::Predictor::Outputs& outputs) {
    features_ = static_cast<std::int64_t>(outputs.features.size());
  });
}

// A row for each class, the noise of a column alike in all of them; without classes all differ.
Result<std::string> GenerationEvaluation::write_sheet(std::uint64_t version,
                                                      const std::filesystem::path& folder) {
  const std::int64_t rows = std::min(spec_.classes, kMostRows);
  const learners::GanOptions& sngan = options_.learners.learner.sngan;
  const auto noise_of_row = [&](std::int64_t row) {
    return noise_of(kColumns, sngan.noise,
                    stream_seed(static_cast<std::uint64_t>(options_.seed), "sheet",
                                sngan.conditional ? 0 : static_cast<std::uint64_t>(row)));
  };
  std::vector<float> noise;
  std::vector<std::int64_t> labels;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::vector<float> own = noise_of_row(row);
    noise.insert(noise.end(), own.begin(), own.end());
    labels.insert(labels.end(), kColumns, row);
  }
  const auto pixels = sampler_->sample(noise, labels);
  if (!pixels) return tl::unexpected(pixels.error());
  const auto png = sheet(*pixels, spec_, kColumns);
  if (!png) return tl::unexpected(png.error());
  char name[32];
  std::snprintf(name, sizeof name, "update_%09llu.png", static_cast<unsigned long long>(version));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (auto written = write_file(folder / name, *png); !written)
    return tl::unexpected(written.error());
  return std::string(name);
}

Result<void> GenerationEvaluation::judge(Statistics& found, std::span<const std::uint8_t> pixels,
                                         std::span<const std::int64_t> labels) {
  learners::PictureNetwork::Outputs judged;
  if (predictor_) {
    auto outputs = predictor_->outputs(
        middles(pixels, spec_.side, classifier_->pictures.side, spec_.channels));
    if (!outputs) return tl::unexpected(outputs.error());
    judged = *std::move(outputs);
    const auto classes = static_cast<std::size_t>(spec_.classes);
    for (std::size_t row = 0; row < labels.size(); ++row) {
      const auto logits = std::span(judged.logits).subspan(row * classes, classes);
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      found.right += best == labels[row] ? 1 : 0;
    }
  }
  if (script_) {
    auto outputs = script_->outputs(pixels);
    if (!outputs) return tl::unexpected(outputs.error());
    judged = *std::move(outputs);
  }
  if (judged.count > 0) {
    if (auto added = found.features.add(judged.features); !added) return added;
    add_probabilities(judged, found.probabilities);
  }
  found.count += static_cast<std::int64_t>(labels.size());
  std::vector<float> values(pixels.size());
  std::transform(pixels.begin(), pixels.end(), values.begin(),
                 [](std::uint8_t pixel) { return static_cast<float>(pixel); });
  if (options_.learners.learner.sngan.conditional) return found.variance.add(values, labels);
  return found.variance.add(values, std::vector<std::int64_t>(labels.size()));  // all alike
}

Result<GenerationEvaluation::Statistics> GenerationEvaluation::of_samples(
    const std::function<bool()>& keep_going) {
  const learners::GanOptions& sngan = options_.learners.learner.sngan;
  std::optional<Statistics> found;
  for (std::int64_t begin = 0; begin < sngan.samples; begin += kBatch) {
    if (!keep_going()) return fail(ErrorCode::kUnavailable, "the evaluation was broken off");
    const std::int64_t count = std::min(kBatch, sngan.samples - begin);
    std::vector<std::int64_t> labels;
    for (std::int64_t i = begin; i < begin + count; ++i) labels.push_back(i % spec_.classes);
    const auto pixels =
        sampler_->sample(noise_of(count, sngan.noise,
                                  stream_seed(static_cast<std::uint64_t>(options_.seed), "samples",
                                              static_cast<std::uint64_t>(begin))),
                         labels);
    if (!pixels) return tl::unexpected(pixels.error());
    if (!found) found.emplace(features_, spec_.classes, spec_.side * spec_.side * spec_.channels);
    if (auto judged = judge(*found, *pixels, labels); !judged)
      return tl::unexpected(judged.error());
  }
  return *std::move(found);
}

Result<GenerationEvaluation::Statistics> GenerationEvaluation::of_real(
    const std::function<bool()>& keep_going) {
  const std::int64_t wanted = std::min(options_.learners.learner.sngan.samples, set_->size());
  data::Loader loader(set_, loader_options(options_, data::Split::kTraining));
  Statistics found(features_, spec_.classes, spec_.side * spec_.side * spec_.channels);
  for (std::int64_t begin = 0; begin < wanted; begin += kBatch) {
    if (!keep_going()) return fail(ErrorCode::kUnavailable, "the evaluation was broken off");
    loader.request(0, begin, std::min(wanted, begin + kBatch));
    const auto pictures = loader.next();
    if (!pictures) return tl::unexpected(pictures.error());
    if (pictures->size() == 0) continue;
    if (auto judged = judge(found, pictures->pixels, pictures->labels); !judged)
      return tl::unexpected(judged.error());
  }
  return found;
}

Result<nlohmann::ordered_json> GenerationEvaluation::run(const models::ParameterSet& parameters,
                                                         const std::filesystem::path& folder,
                                                         const std::function<bool()>& keep_going) {
  if (auto taken = sampler_->set_parameters(parameters); !taken)
    return tl::unexpected(taken.error());
  const auto file = write_sheet(parameters.version, folder);
  if (!file) return tl::unexpected(file.error());
  nlohmann::ordered_json report{{"samples", *file}};
  const learners::GanOptions& sngan = options_.learners.learner.sngan;
  if (features_ == 0 && sngan.collapse_share == 0) return report;
  if (!real_) {
    auto real = of_real(keep_going);
    if (!real) return tl::unexpected(real.error());
    real_ = std::make_shared<const Statistics>(std::move(*real));
  }
  const auto samples = of_samples(keep_going);
  if (!samples) return tl::unexpected(samples.error());
  if (auto added = add_quality(*samples, report); !added) return tl::unexpected(added.error());
  const double variance = samples->variance.mean(), real_variance = real_->variance.mean();
  report["variance_within_classes"] = variance;
  report["real_variance_within_classes"] = real_variance;
  const double share = variance / std::max(1e-9, real_variance);
  report["variance_share"] = share;
  if (sngan.collapse_share > 0) report["collapsed"] = share < sngan.collapse_share;
  report["pictures"] = samples->count;
  return report;
}

Result<void> GenerationEvaluation::add_quality(const Statistics& samples,
                                               nlohmann::ordered_json& report) const {
  const learners::GanOptions& sngan = options_.learners.learner.sngan;
  if (features_ > 0) {
    const auto distance = learners::frechet_distance(samples.features, real_->features);
    if (!distance) return tl::unexpected(distance.error());
    report["frechet_distance"] = *distance;
    report["features"] = script_ ? sngan.features : sngan.classifier;
  }
  if (!samples.probabilities.empty()) {
    const auto classes = static_cast<std::int64_t>(samples.probabilities.size()) / samples.count;
    const auto score =
        learners::inception_score(samples.probabilities, classes,
                                  std::clamp<std::int64_t>(samples.count / kFewest, 1, kMostParts));
    if (!score) return tl::unexpected(score.error());
    report["inception_score"] = score->mean;
    report["inception_score_deviation"] = score->deviation;
  }
  if (predictor_ && sngan.conditional)
    report["agreement"] = static_cast<double>(samples.right) / static_cast<double>(samples.count);
  return {};
}

}  // namespace troupe::actors
