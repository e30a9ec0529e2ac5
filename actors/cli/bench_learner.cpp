// Loads the learning library and runs its benchmark, which is looked up by name like the learner
// itself.
#include "actors/cli/bench_learner.hpp"

#include <cstdio>
#include <memory>

#include "actors/cli/verbs.hpp"
#include "learners/benchmark.hpp"
#include "learners/loader.hpp"

namespace troupe::actors::cli {
namespace {

struct LearnerBenchCommand {
  learners::LearnerBenchmarkOptions options;
  bool json = false;
};

int bench_learner(const LearnerBenchCommand& command) {
  const auto benchmark = learners::load_learner_benchmark();
  if (!benchmark) {
    print_error(benchmark.error().message);
    return 1;
  }
  const auto report = (*benchmark)(command.options);
  if (!report) {
    print_error(report.error().message);
    return report.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
  }
  std::fputs(report->text.c_str(), stdout);
  if (command.json) std::printf("%s\n", report->json.c_str());
  return 0;
}

}  // namespace

void add_bench_learner(CLI::App& bench, int& exit_code) {
  CLI::App* verb =
      bench.add_subcommand("learner", "D4PG updates beside their matrix products alone");
  verb->footer("Example: troupe bench learner --threads 1 --json");
  const auto command = std::make_shared<LearnerBenchCommand>();
  verb->add_option("--rounds", command->options.rounds, "Rounds of measurements")
      ->check(CLI::Range(1, 1000));
  verb->add_option("--threads", command->options.threads, "Thread counts, one after the other")
      ->check(CLI::Range(1, 4096));
  verb->add_flag("--json", command->json, "End with one JSON object");
  verb->callback([command, &exit_code] { exit_code = bench_learner(*command); });
}

}  // namespace troupe::actors::cli
