// MuJoCo's errors come back as values, on any thread, and its data is usable after a reset.
#include "envs/mujoco/guard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <filesystem>
#include <thread>

#include "envs/mujoco/simulation.hpp"

namespace troupe::envs::mujoco {
namespace {

using ::testing::HasSubstr;

TEST(Guard, TurnsAnErrorIntoFalseWithItsText) {
  install_log_handler();
  EXPECT_FALSE(guarded([] { mju_error("boom %d", 7); }));
  EXPECT_THAT(last_error(), HasSubstr("boom 7"));
  bool ran = false;
  EXPECT_TRUE(guarded([&] { ran = true; }));
  EXPECT_TRUE(ran);
}

TEST(Guard, KeepsThreadsApart) {
  install_log_handler();
  const auto raise = [](int id) {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_FALSE(guarded([&] { mju_error("thread %d", id); }));
      EXPECT_EQ(last_error(), "thread " + std::to_string(id));
    }
  };
  std::thread first(raise, 1), second(raise, 2);
  first.join();
  second.join();
}

TEST(Guard, KeepsWarningsOffTheConsoleAndOutOfTheWorkingDirectory) {
  install_log_handler();
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  mju_warning("mind the %s", "gap");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(last_warning(), HasSubstr("mind the gap"));
  EXPECT_FALSE(std::filesystem::exists("MUJOCO_LOG.TXT"));
}

TEST(Guard, LeavesTheDataUsableAfterARealErrorAndAReset) {
  auto model = Model::load("cartpole.xml");
  ASSERT_TRUE(model) << model.error().message;
  Simulation simulation(*model);
  mjData* data = simulation.d();
  EXPECT_FALSE(guarded([&] { mj_stackAllocByte(data, std::size_t{1} << 40, 8); }));
  EXPECT_NE(last_error(), "");
  ASSERT_TRUE(simulation.reset());
  EXPECT_TRUE(simulation.step(100));
  EXPECT_NEAR(simulation.d()->time, 1, 1e-9);
}

TEST(GuardDeathTest, SaysWhatHappenedWhenNobodyGuards) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  install_log_handler();
  EXPECT_DEATH(mju_error("nobody home"), "outside any guard: nobody home");
}

}  // namespace
}  // namespace troupe::envs::mujoco
