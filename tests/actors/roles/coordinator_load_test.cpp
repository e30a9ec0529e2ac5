// The real coordinator with nodes in processes of their own, over real connections.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/actors/roles/light_nodes.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::actors {
namespace {

TEST(CoordinatorLoad, TwelveNodesJoinReportAtTheirRateAndLeave) {
  const TemporaryFolder folder;
  LightRun run(light_options(12), folder.path());
  ASSERT_TRUE(run.wait_ready(std::chrono::seconds(60))) << run.log();
  const std::uint64_t before = run.messages();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  // 14 nodes with 10 reports and a pong a second, 12 of them with 20 episodes.
  const std::uint64_t expected = 3 * (14 * 11 + 12 * 20);
  EXPECT_GT(run.messages() - before, expected / 3);
  EXPECT_LT(run.messages() - before, expected * 4 / 3);
  EXPECT_EQ(run.log().find("does not answer"), std::string::npos) << run.log();
  EXPECT_TRUE(run.stop(std::chrono::seconds(30))) << run.log();
}

}  // namespace
}  // namespace troupe::actors

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "node") == 0)
    return troupe::actors::light_node_main(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
