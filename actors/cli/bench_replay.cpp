// `troupe bench replay`: a table in this process, beside memcpy.
#include "actors/cli/bench_replay.hpp"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "actors/cli/verbs.hpp"
#include "replay/benchmark.hpp"

namespace troupe::actors::cli {
namespace {

struct ReplayBenchCommand {
  replay::ReplayBenchmarkOptions options;
  std::string compression = "lz4";
  bool json = false;
};

int bench_replay(const ReplayBenchCommand& command) {
  replay::ReplayBenchmarkOptions options = command.options;
  options.compression =
      replay::compression_of(command.compression).value_or(replay::Compression::kNone);
  const auto result = replay::benchmark_replay(options);
  if (!result) {
    print_error(result.error().message);
    return result.error().code == ErrorCode::kInvalidArgument ? 2 : 1;
  }
  const double share = result->gather_bytes_per_second / result->memcpy_bytes_per_second;
  std::printf("%s, batch %lld, one thread\n", command.options.shape.c_str(),
              static_cast<long long>(command.options.batch));
  std::printf("inserts/s %14.0f\nsamples/s %14.0f\nbytes an item %10.0f\ngather / memcpy %8.2f\n",
              result->inserts_per_second, result->samples_per_second, result->bytes_per_item,
              share);
  if (!command.json) return 0;
  const nlohmann::ordered_json object{{"benchmark", "replay"},
                                      {"shape", command.options.shape},
                                      {"inserts_per_second", result->inserts_per_second},
                                      {"samples_per_second", result->samples_per_second},
                                      {"gather_bytes_per_second", result->gather_bytes_per_second},
                                      {"memcpy_bytes_per_second", result->memcpy_bytes_per_second},
                                      {"bytes_per_item", result->bytes_per_item},
                                      {"raw_bytes_per_item", result->raw_bytes_per_item},
                                      {"ratios", {{"gather_over_memcpy", share}}}};
  std::printf("%s\n", object.dump().c_str());
  return 0;
}

}  // namespace

void add_bench_replay(CLI::App& bench, int& exit_code) {
  CLI::App* verb = bench.add_subcommand("replay", "A replay table beside memcpy");
  verb->footer("Example: troupe bench replay pixels --json");
  const auto command = std::make_shared<ReplayBenchCommand>();
  verb->add_option("SHAPE", command->options.shape, "state or pixels");
  verb->add_option("--frames", command->options.frames,
                   "Of pixels: a file of frames of 84 x 84 x 3 bytes");
  verb->add_option("--compression", command->compression, "Of pixels")
      ->check(CLI::IsMember({"none", "lz4", "zstd"}));
  verb->add_option("--items", command->options.items, "Items in the full table");
  verb->add_option("--batch", command->options.batch, "Items in a batch");
  verb->add_option("--seconds", command->options.seconds, "Of each measurement")
      ->check(CLI::Range(0.1, 3600.0));
  verb->add_flag("--json", command->json, "End with one JSON object");
  verb->callback([command, &exit_code] { exit_code = bench_replay(*command); });
}

}  // namespace troupe::actors::cli
