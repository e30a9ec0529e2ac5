// Loads the learning library and runs its benchmark, which is looked up by name like the learner
// itself.
#include "actors/cli/bench_learner.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <memory>
#include <system_error>

#include "actors/cli/verbs.hpp"
#include "learners/benchmark.hpp"
#include "learners/loader.hpp"

namespace troupe::actors::cli {
namespace {

constexpr const char* kSymbol = "troupe_learner_benchmark";

struct LearnerBenchCommand {
  learners::LearnerBenchmarkOptions options;
  bool json = false;
};

Result<learners::RunLearnerBenchmark*> find_benchmark() {
  if (const auto loaded = learners::load_learning_library(); !loaded) {
    return tl::unexpected(loaded.error());
  }
  for (const auto& path : learners::learning_library_candidates()) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    void* symbol = library == nullptr ? nullptr : dlsym(library, kSymbol);
    if (symbol != nullptr) return reinterpret_cast<learners::RunLearnerBenchmark*>(symbol);
    return fail(ErrorCode::kUnavailable,
                "The learning library " + path.string() + " has no benchmark; build it anew.");
  }
  return fail(ErrorCode::kNotFound, "The learning library is gone from where it was loaded.");
}

int bench_learner(const LearnerBenchCommand& command) {
  const auto benchmark = find_benchmark();
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
