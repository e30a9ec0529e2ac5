// Signals are sent to a child process, not to the test program.
#include "actors/runtime/signals.hpp"

#include <csignal>

#include "tests/actors/runtime/child_fixture.hpp"

namespace troupe::actors {
namespace {

using SignalsTest = ChildFixture;

TEST_F(SignalsTest, EachSignalIsReportedWithItsCount) {
  ChildProcess child = start("report_signals");
  ASSERT_TRUE(ready(child));
  const auto send = [&](int signal, const std::string& expected) {
    ASSERT_TRUE(child.send_signal(signal).has_value());
    ASSERT_TRUE(eventually([&] { return child.log_tail(1) == expected; })) << child.log_tail(10);
  };
  send(SIGINT, "SIGINT 1\n");
  send(SIGINT, "SIGINT 2\n");
  send(SIGTERM, "SIGTERM 3\n");
  EXPECT_TRUE(child.wait(kPatience)->succeeded());
}

TEST_F(SignalsTest, TheListenerEndsWithItsObject) {
  EXPECT_EQ(start("stop_listening").wait(kPatience)->code, 4);
}

}  // namespace
}  // namespace troupe::actors
