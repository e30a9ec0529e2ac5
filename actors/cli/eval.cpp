// `troupe eval`: what a trained classifier is worth on its evaluation set.
#include <cstdio>
#include <memory>

#include "actors/cli/replay_source.hpp"
#include "actors/cli/verbs.hpp"
#include "actors/roles/classification_report.hpp"
#include "actors/roles/picture_evaluation.hpp"
#include "actors/roles/trained_model.hpp"

namespace troupe::actors::cli {
namespace {

struct EvalCommand {
  std::string run;
  std::string path;
  bool json = false;
};

int eval(const EvalCommand& command) {
  auto found = load_trained(command.run, "resnet");
  if (!found) return refuse(found.error());
  if (!command.path.empty()) found->options.data.set.evaluation_path = command.path;
  auto evaluation = PictureEvaluation::open(
      found->options, static_cast<int>(found->options.learners.learner.threads));
  if (!evaluation) return refuse(evaluation.error());
  if ((*evaluation)->set().classes() != found->classes) {
    print_error("the evaluation set has other classes than the run was trained on");
    return 2;
  }
  auto report = (*evaluation)->run(*found->parameters, [] { return true; });
  if (!report) return refuse(report.error());
  (*report)["updates"] = found->parameters->version;
  (*report)["checkpoint"] = found->checkpoint.string();
  if (command.json) {
    std::printf("%s\n", report->dump().c_str());
    return 0;
  }
  std::printf("%s, update %llu: %s\n\n%s", found->checkpoint.filename().c_str(),
              static_cast<unsigned long long>(found->parameters->version),
              classification_line(*report).c_str(), classification_text(*report).c_str());
  return 0;
}

}  // namespace

void add_eval(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand(
      "eval", "Judge a trained classifier on its evaluation set: accuracy, classes, confusion");
  verb->footer("Example: troupe eval runs/resnet_fashion_mnist_seed1 --json");
  const auto command = std::make_shared<EvalCommand>();
  verb->add_option("RUN", command->run, "Directory of a run, or of one of its checkpoints")
      ->required();
  verb->add_option("--data", command->path,
                   "Judge it on the evaluation set in this folder, instead of the run's own")
      ->type_name("DIR");
  verb->add_flag("--json", command->json, "One JSON object");
  verb->callback([command, &exit_code] { exit_code = eval(*command); });
}

}  // namespace troupe::actors::cli
