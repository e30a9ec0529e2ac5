// Implements the judging of samples.
#include "actors/roles/generation_evaluation.hpp"

#include <algorithm>
#include <cstdio>

#include "actors/config/checks.hpp"
#include "envs/spec/files.hpp"
#include "envs/spec/random.hpp"
#include "learners/data/grid.hpp"
#include "learners/loader.hpp"

namespace troupe::actors {

namespace data = learners::data;

namespace {

constexpr std::int64_t kBatch = 100;                   // pictures at a time
constexpr std::int64_t kMostRows = 10, kColumns = 10;  // of the sheet

std::vector<float> noise_of(std::int64_t count, std::int64_t width, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> noise(static_cast<std::size_t>(count * width));
  for (float& value : noise) value = static_cast<float>(random.normal());
  return noise;
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
  Statistics(std::int64_t feature_count, std::int64_t classes, std::int64_t pixels)
      : features(feature_count), variance(classes, pixels) {}
  learners::FeatureStatistics features;
  learners::IntraClassVariance variance;
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
  return evaluation;
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

Result<std::vector<std::uint8_t>> sheet(std::span<const std::uint8_t> pixels,
                                        const learners::PictureSpec& spec, int columns) {
  const auto side = static_cast<int>(spec.side), channels = static_cast<int>(spec.channels);
  const auto bytes = static_cast<std::size_t>(side) * static_cast<std::size_t>(side * channels);
  std::vector<data::Image> pictures;
  for (std::size_t at = 0; at + bytes <= pixels.size(); at += bytes) {
    data::Image& picture = pictures.emplace_back(side, side, channels);
    std::copy_n(pixels.begin() + static_cast<std::ptrdiff_t>(at), bytes, picture.pixels.begin());
  }
  return data::grid(pictures, columns).and_then(data::encode_png);
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
  const auto outputs =
      predictor_->outputs(middles(pixels, spec_.side, classifier_->pictures.side, spec_.channels));
  if (!outputs) return tl::unexpected(outputs.error());
  if (auto added = found.features.add(outputs->features); !added) return added;
  const auto classes = static_cast<std::size_t>(spec_.classes);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto logits = std::span(outputs->logits).subspan(row * classes, classes);
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    found.right += best == labels[row] ? 1 : 0;
  }
  found.count += static_cast<std::int64_t>(labels.size());
  std::vector<float> values(pixels.size());
  std::transform(pixels.begin(), pixels.end(), values.begin(),
                 [](std::uint8_t pixel) { return static_cast<float>(pixel); });
  return found.variance.add(values, labels);
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
  if (!predictor_) return report;
  if (!real_) {
    auto real = of_real(keep_going);
    if (!real) return tl::unexpected(real.error());
    real_ = std::make_shared<const Statistics>(std::move(*real));
  }
  const auto samples = of_samples(keep_going);
  if (!samples) return tl::unexpected(samples.error());
  const auto distance = learners::frechet_distance(samples->features, real_->features);
  if (!distance) return tl::unexpected(distance.error());
  report["frechet_distance"] = *distance;
  report["features"] = options_.learners.learner.sngan.classifier;
  if (options_.learners.learner.sngan.conditional)
    report["agreement"] = static_cast<double>(samples->right) / static_cast<double>(samples->count);
  report["variance_within_classes"] = samples->variance.mean();
  report["real_variance_within_classes"] = real_->variance.mean();
  report["pictures"] = samples->count;
  return report;
}

std::string generation_line(const nlohmann::json& report) {
  std::string text = "samples/" + report.at("samples").get<std::string>();
  if (!report.contains("frechet_distance")) return text;
  char distance[80], agreement[80] = "", variance[80];
  std::snprintf(distance, sizeof distance, "Frechet distance %.2f in a classifier's features, ",
                report.at("frechet_distance").get<double>());
  if (report.contains("agreement"))
    std::snprintf(agreement, sizeof agreement, "%.1f %% taken for their class, ",
                  100 * report.at("agreement").get<double>());
  std::snprintf(variance, sizeof variance, "variance within classes %.2f of the real, ",
                report.at("variance_within_classes").get<double>() /
                    std::max(1e-9, report.at("real_variance_within_classes").get<double>()));
  return std::string(distance) + agreement + variance + text;
}

}  // namespace troupe::actors
