#include "actors/runtime/restart_budget.hpp"

#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
const RestartBudget::Time kStart{};

TEST(RestartBudget, DelaysDoubleUpToTheLongest) {
  RestartBudget budget({.restarts = 6, .first_delay = 200ms, .longest_delay = 1s});
  for (const auto delay : {200ms, 400ms, 800ms, 1000ms, 1000ms})
    EXPECT_EQ(budget.next_restart(kStart), kStart + delay);
}

TEST(RestartBudget, EndsWithTheLastAllowedRestart) {
  RestartBudget budget({.restarts = 2, .window = 10s});
  EXPECT_TRUE(budget.next_restart(kStart).has_value());
  EXPECT_TRUE(budget.next_restart(kStart + 1s).has_value());
  EXPECT_FALSE(budget.next_restart(kStart + 2s).has_value());
  EXPECT_EQ(budget.used(kStart + 2s), 2);
}

TEST(RestartBudget, ARestartIsForgivenAfterTheWindow) {
  RestartBudget budget({.restarts = 2, .window = 10s, .first_delay = 200ms});
  budget.next_restart(kStart);
  budget.next_restart(kStart + 5s);
  EXPECT_EQ(budget.next_restart(kStart + 10s), kStart + 10s + 400ms)
      << "the one at 5 s still counts";
  EXPECT_EQ(budget.next_restart(kStart + 60s), kStart + 60s + 200ms);
}

TEST(RestartBudget, ZeroAllowsNone) {
  RestartBudget budget({.restarts = 0});
  EXPECT_FALSE(budget.next_restart(kStart).has_value());
}

TEST(RestartBudget, AHugeBudgetNeverOverflowsTheDelay) {
  RestartBudget budget({.restarts = 10000, .longest_delay = 10s});
  for (int i = 0; i < 5000; ++i) EXPECT_LE(*budget.next_restart(kStart), kStart + 10s);
}

}  // namespace
}  // namespace troupe::actors
