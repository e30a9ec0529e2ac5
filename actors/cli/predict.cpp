// `troupe predict`: what a trained classifier takes pictures for.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "actors/cli/replay_source.hpp"
#include "actors/cli/verbs.hpp"
#include "actors/roles/trained_model.hpp"
#include "envs/spec/files.hpp"
#include "learners/data/augment.hpp"
#include "learners/loader.hpp"

namespace troupe::actors::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PredictCommand {
  std::string run;
  std::vector<std::string> files;
  std::int64_t top = 3;
  bool json = false;
};

std::vector<double> probabilities(const std::vector<float>& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> shares;
  for (const float logit : logits) shares.push_back(std::exp(static_cast<double>(logit) - largest));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

Result<std::vector<double>> look_at(const std::string& file, const TrainedModel& classifier,
                                    learners::Predictor& predictor) {
  const auto bytes = read_file(file);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto picture = learners::data::evaluation_picture(
      *bytes, file, static_cast<int>(classifier.pictures.channels),
      classifier.options.data.augment);
  if (!picture) return tl::unexpected(picture.error());
  return predictor.outputs(picture->pixels).map([](const learners::Predictor::Outputs& outputs) {
    return probabilities(outputs.logits);
  });
}

// The most likely classes first.
Json ranked(const std::vector<double>& shares, const std::vector<std::string>& classes,
            std::int64_t top) {
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  Json list = Json::array();
  for (std::size_t i = 0; i < order.size() && static_cast<std::int64_t>(i) < top; ++i)
    list.push_back({{"class", classes[order[i]]}, {"probability", shares[order[i]]}});
  return list;
}

int predict(const PredictCommand& command) {
  const auto classifier = load_trained(command.run, "resnet");
  if (!classifier) return refuse(classifier.error());
  const auto make = learners::load_predictor();
  if (!make) return refuse(make.error());
  const learners::LearnerOptions& learner = classifier->options.learners.learner;
  auto predictor = (*make)(learner.resnet, classifier->pictures, static_cast<int>(learner.threads));
  if (!predictor) return refuse(predictor.error());
  if (auto taken = (*predictor)->set_parameters(*classifier->parameters); !taken)
    return refuse(taken.error());
  int code = 0;
  for (const std::string& file : command.files) {
    const auto shares = look_at(file, *classifier, **predictor);
    if (!shares) {  // the others are still answered
      code = std::max(code, refuse(shares.error()));
      continue;
    }
    const Json list = ranked(*shares, classifier->classes, command.top);
    if (command.json) {
      std::printf("%s\n", Json{{"file", file}, {"classes", list}}.dump().c_str());
      continue;
    }
    std::printf("%s\n", file.c_str());
    for (const Json& one : list)
      std::printf("  %6.2f %%  %s\n", 100 * one["probability"].get<double>(),
                  one["class"].get<std::string>().c_str());
  }
  return code;
}

}  // namespace

void add_predict(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand(
      "predict", "Say what a trained classifier takes pictures for (JPEG or PNG)");
  verb->footer("Example: troupe predict runs/resnet_fashion_mnist_seed1 coat.png boot.jpg");
  const auto command = std::make_shared<PredictCommand>();
  verb->add_option("RUN", command->run, "Directory of a run, or of one of its checkpoints")
      ->required();
  verb->add_option("FILE", command->files, "Pictures")->required();
  verb->add_option("--top", command->top, "Classes shown of each, the most likely first")
      ->check(CLI::Range(1, 1000000));
  verb->add_flag("--json", command->json, "One JSON object a line");
  verb->callback([command, &exit_code] { exit_code = predict(*command); });
}

}  // namespace troupe::actors::cli
