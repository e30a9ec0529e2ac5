// Round trips: what is printed reads back as the same options.
#include "actors/config/printer.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/actors/config/config_files.hpp"

namespace troupe::actors {
namespace {

using testing::HasSubstr;
using testing::Not;

class PrinterTest : public ConfigFiles {
 protected:
  RunOptions read_back(const std::string& yaml) {
    const auto config = load_config(write("printed.yaml", yaml));
    EXPECT_TRUE(config) << config.error().message << "\n" << yaml;
    return config ? config->options : RunOptions{};
  }
};

RunOptions unusual_options() {
  RunOptions options;
  options.job = "null";
  options.seed = 0;
  options.processes = "0";
  options.deterministic = true;
  options.environment.name = "probe/nan@50:observation";
  options.replay.error_buffer = 12345.678901234567;
  options.replay.capacity = 9007199254740;
  options.replay.capacity = 123456789;
  options.learners.learner.d4pg.learning_rate = 1e-4;
  options.learners.learner.d4pg.discount = 1.0 / 3;
  options.learners.learner.d4pg.policy = {1, 2, 3};
  options.learners.learner.devices = {"cpu", "cpu"};
  options.telemetry.endpoint = "ipc://@odd \"name\"\\ #x: \xC3\xA9";
  options.stop.mean_return = -0.0;
  options.stop.wall_time = Duration(1234567);
  return options;
}

TEST_F(PrinterTest, DefaultsReadBackAsTheyWere) {
  RunOptions options;
  options.environment.name = "pendulum";
  EXPECT_EQ(print_yaml(read_back(print_yaml(options))), print_yaml(options));
}

TEST_F(PrinterTest, UnusualValuesReadBackAsTheyWere) {
  const RunOptions options = unusual_options();
  const RunOptions again = read_back(print_yaml(options));
  EXPECT_EQ(again.job, "null");
  EXPECT_EQ(again.processes, "0");
  EXPECT_EQ(again.seed, 0);
  EXPECT_EQ(again.environment.name, options.environment.name);
  EXPECT_EQ(again.replay.error_buffer, options.replay.error_buffer);
  EXPECT_EQ(again.learners.learner.d4pg.discount, options.learners.learner.d4pg.discount);
  EXPECT_EQ(again.telemetry.endpoint, options.telemetry.endpoint);
  EXPECT_EQ(again.stop.wall_time, options.stop.wall_time);
  EXPECT_EQ(print_yaml(again), print_yaml(options));
  EXPECT_EQ(config_hash(again), config_hash(options));
}

TEST_F(PrinterTest, WordsThatOtherReadersTypeAreQuoted) {
  RunOptions options;
  for (const char* name : {"yes", "null", "1e5", "0x10", "~", "true", "a: b", "- a", "#", "a\nb"}) {
    options.environment.name = name;
    EXPECT_THAT(print_yaml(options), HasSubstr("name: \"")) << name;
    EXPECT_EQ(read_back(print_yaml(options)).environment.name, name);
  }
  options.environment.name = "dmc/cartpole_swingup";
  EXPECT_THAT(print_yaml(options), HasSubstr("name: dmc/cartpole_swingup\n"));
}

TEST_F(PrinterTest, OriginsStandBesideTheValues) {
  const auto config =
      load_config(write("a.yaml", "environment: {name: pendulum}\n"), {"d4pg.batch=128"});
  ASSERT_TRUE(config) << config.error().message;
  const std::string text = print_yaml(*config);
  EXPECT_THAT(text, HasSubstr("  batch: 128  # command line\n"));
  EXPECT_THAT(text, HasSubstr("  name: pendulum  # " + path("a.yaml").string() + ":1\n"));
  EXPECT_THAT(text, HasSubstr("  n_step: 5\n"));
  EXPECT_EQ(print_yaml(read_back(text)), print_yaml(config->options));
}

TEST_F(PrinterTest, JsonHasTypesAndSections) {
  const auto json = nlohmann::json::parse(print_json(unusual_options()));
  EXPECT_EQ(json["seed"], 0);
  EXPECT_EQ(json["deterministic"], true);
  EXPECT_EQ(json["d4pg"]["policy"], nlohmann::json({1, 2, 3}));
  EXPECT_EQ(json["checkpoint"]["every"], "1m");
  EXPECT_TRUE(nlohmann::json::parse(print_json(RunOptions{}))["stop"]["return"].is_null());
}

TEST_F(PrinterTest, EveryOptionCountsInTheHash) {
  RunOptions options;
  const std::string before = config_hash(options);
  options.supervision.restarts += 1;
  EXPECT_NE(config_hash(options), before);
}

}  // namespace
}  // namespace troupe::actors
