// Every configuration that comes with Troupe is valid, explained and names its task.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "actors/config/reader.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

TEST(ShippedConfigsTest, EveryOneIsValidAndOpensWithAComment) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(TROUPE_CONFIGS)) {
    if (entry.path().extension() != ".yaml") continue;
    std::string first_line;
    std::ifstream stream(entry.path());
    std::getline(stream, first_line);
    EXPECT_THAT(first_line, testing::StartsWith("# ")) << entry.path();
    if (entry.path().filename() == "base.yaml") continue;
    const auto config = load_config(entry.path());
    EXPECT_TRUE(config) << config.error().message;
    ++count;
  }
  EXPECT_GE(count, 5);
}

TEST(ShippedConfigsTest, EachRunEndsByItself) {
  for (const char* name : {"cartpole_swingup", "cheetah_run", "walker_walk", "pendulum", "smoke"}) {
    const auto config = load_config(fs::path(TROUPE_CONFIGS) / (std::string(name) + ".yaml"));
    ASSERT_TRUE(config) << config.error().message;
    const StopOptions& stop = config->options.stop;
    EXPECT_TRUE(stop.actor_steps > 0 || stop.wall_time.count() > 0) << name;
  }
}

}  // namespace
}  // namespace troupe::actors
