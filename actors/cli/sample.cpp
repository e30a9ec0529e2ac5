// `troupe sample`: pictures from a trained generator, as a sheet.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "actors/cli/replay_source.hpp"
#include "actors/cli/verbs.hpp"
#include "actors/roles/generation_evaluation.hpp"
#include "actors/roles/trained_model.hpp"
#include "envs/spec/files.hpp"
#include "envs/spec/random.hpp"
#include "learners/loader.hpp"

namespace troupe::actors::cli {
namespace {

struct SampleCommand {
  std::string run, file = "samples.png", name;
  std::int64_t rows = 10, columns = 10, seed = 1;
  bool interpolate = false;
};

struct Wanted {
  std::vector<float> noise;
  std::vector<std::int64_t> labels;
};

// Rows of one class each, in turn; with `interpolate` a row goes in equal steps from one noise to
// another.
Wanted wanted_of(const SampleCommand& command, std::int64_t width, std::int64_t classes,
                 std::int64_t only) {
  Wanted wanted;
  for (std::int64_t row = 0; row < command.rows; ++row) {
    Random random(stream_seed(static_cast<std::uint64_t>(command.seed), "sample",
                              static_cast<std::uint64_t>(row)));
    std::vector<float> first(static_cast<std::size_t>(width)), last(first);
    for (auto* end : {&first, &last})
      for (float& value : *end) value = static_cast<float>(random.normal());
    for (std::int64_t column = 0; column < command.columns; ++column) {
      const float share = command.columns > 1
                              ? static_cast<float>(column) / static_cast<float>(command.columns - 1)
                              : 0;
      for (std::size_t i = 0; i < first.size(); ++i)
        wanted.noise.push_back(command.interpolate ? first[i] + share * (last[i] - first[i])
                                                   : static_cast<float>(random.normal()));
      wanted.labels.push_back(only >= 0 ? only : row % classes);
    }
  }
  return wanted;
}

int sample(const SampleCommand& command) {
  const auto model = load_trained(command.run, "sngan");
  if (!model) return refuse(model.error());
  std::int64_t only = -1;
  if (!command.name.empty()) {
    const auto found = std::find(model->classes.begin(), model->classes.end(), command.name);
    if (found == model->classes.end()) {
      std::string names;
      for (const std::string& name : model->classes) names += (names.empty() ? "" : ", ") + name;
      print_error("there is no class " + command.name + "; there are " + names);
      return 2;
    }
    only = found - model->classes.begin();
  }
  const auto make = learners::load_sampler();
  if (!make) return refuse(make.error());
  const learners::LearnerOptions& learner = model->options.learners.learner;
  auto sampler = (*make)(learner.sngan, model->pictures, static_cast<int>(learner.threads));
  if (!sampler) return refuse(sampler.error());
  if (auto taken = (*sampler)->set_parameters(*model->parameters); !taken)
    return refuse(taken.error());
  const Wanted wanted = wanted_of(command, learner.sngan.noise, model->pictures.classes, only);
  const auto png = (*sampler)
                       ->sample(wanted.noise, wanted.labels)
                       .and_then([&](const std::vector<std::uint8_t>& pixels) {
                         return sheet(pixels, model->pictures, static_cast<int>(command.columns));
                       });
  if (!png) return refuse(png.error());
  if (auto written = write_file(command.file, *png); !written) return refuse(written.error());
  std::printf("%s: %lld pictures of update %llu\n", command.file.c_str(),
              static_cast<long long>(command.rows * command.columns),
              static_cast<unsigned long long>(model->parameters->version));
  return 0;
}

}  // namespace

void add_sample(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("sample", "Write pictures of a trained generator into a PNG");
  verb->footer(
      "Example: troupe sample runs/sngan_fashion_mnist_seed1 --class sandal --file sandals.png");
  const auto command = std::make_shared<SampleCommand>();
  verb->add_option("RUN", command->run, "Directory of a run, or of one of its checkpoints")
      ->required();
  verb->add_option("--file", command->file, "Where to; samples.png by default");
  verb->add_option("--class", command->name, "Of one class; else a row of each in turn");
  verb->add_option("--rows", command->rows, "Rows of the sheet")->check(CLI::Range(1, 1000));
  verb->add_option("--columns", command->columns, "Pictures in a row")->check(CLI::Range(1, 1000));
  verb->add_option("--seed", command->seed, "Of the noise");
  verb->add_flag("--interpolate", command->interpolate, "Each row goes from one noise to another");
  verb->callback([command, &exit_code] { exit_code = sample(*command); });
}

}  // namespace troupe::actors::cli
