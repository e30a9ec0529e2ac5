// Real children and grandchildren: how they end, what they inherit, and that none is left behind.
#include "actors/runtime/process.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>

#include "actors/runtime/lifeline.hpp"
#include "actors/runtime/thread_settings.hpp"
#include "tests/actors/runtime/child_fixture.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

class ProcessTest : public ChildFixture {
 protected:
  // Whether the process that took this lock still lives; zombies do not.
  static bool lock_is_held(const std::string& lock) {
    const int file = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    const bool held = ::flock(file, LOCK_EX | LOCK_NB) != 0;
    ::close(file);
    return held;
  }
};

TEST_F(ProcessTest, ExitCodesAreReported) {
  ChildProcess child = start("exit_with", "3");
  const auto status = child.wait(kPatience);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->describe(), "exit code 3");
  EXPECT_FALSE(status->succeeded());
  EXPECT_EQ(child.poll()->code, 3) << "the status stays";
  ChildProcess good = start("exit_with", "0");
  EXPECT_TRUE(good.wait(kPatience)->succeeded());
}

TEST_F(ProcessTest, SignalsAreNamed) {
  EXPECT_EQ(start("die_by", "9").wait(kPatience)->describe(), "killed by signal 9 (SIGKILL)");
  EXPECT_TRUE(start("die_by", "11")
                  .wait(kPatience)
                  ->describe()
                  .starts_with("killed by signal 11 (SIGSEGV)"));
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_name(99), "signal 99");
}

TEST_F(ProcessTest, AProgramThatCannotStartIsNamed) {
  ProcessOptions missing = options("exit_with");
  missing.executable = "/nonexistent/program";
  const auto child = ChildProcess::spawn(missing);
  ASSERT_FALSE(child.has_value());
  EXPECT_EQ(child.error().code, ErrorCode::kIo);
  EXPECT_NE(child.error().message.find("test child"), std::string::npos);
  EXPECT_NE(child.error().message.find("/nonexistent/program"), std::string::npos);

  ProcessOptions unwritable = options("exit_with");
  unwritable.log_file = "/nonexistent/log";
  EXPECT_NE(ChildProcess::spawn(unwritable).error().message.find("/nonexistent/log"),
            std::string::npos);
}

TEST_F(ProcessTest, BothOutputsAreAppendedToTheLogInOrder) {
  std::ofstream(path("log")) << "from an earlier process\n";
  ChildProcess child = start("print_lines", "5");
  ASSERT_TRUE(child.wait(kPatience).has_value());
  EXPECT_EQ(child.log_tail(2), "line 4\nline 5\n");
  EXPECT_EQ(child.log_tail(100), "line 1\nline 2\nline 3\nline 4\nline 5\n");
  EXPECT_TRUE(tail_of_file(path("log"), 100).starts_with("from an earlier process\n"));
}

TEST_F(ProcessTest, TheTailHandlesEveryShapeOfFile) {
  EXPECT_EQ(tail_of_file(path("missing"), 3), "");
  std::ofstream(path("empty"));
  EXPECT_EQ(tail_of_file(path("empty"), 3), "");
  std::ofstream(path("open")) << "a\nb\nc";
  EXPECT_EQ(tail_of_file(path("open"), 2), "b\nc");
  EXPECT_EQ(tail_of_file(path("open"), 0), "");
  std::ofstream(path("blank")) << "\n\n\n";
  EXPECT_EQ(tail_of_file(path("blank"), 2), "\n\n");
  std::ofstream(path("long")) << std::string(1 << 20, 'x') << "\nend\n";
  EXPECT_EQ(tail_of_file(path("long"), 1), "end\n");
  EXPECT_LE(tail_of_file(path("long"), 2).size(), std::size_t{65536});
}

TEST_F(ProcessTest, TheEnvironmentIsAddedToAndReplaced) {
  ProcessOptions with = options("print_variable", "TROUPE_TEST_VARIABLE");
  with.environment = {{"TROUPE_TEST_VARIABLE", "value"}};
  auto child = ChildProcess::spawn(with);
  ASSERT_TRUE(child.has_value());
  child->wait(kPatience);
  EXPECT_EQ(child->log_tail(1), "value\n");
  EXPECT_NE(output_of("print_variable", "PATH"), "(unset)\n") << "the rest is inherited";
  ProcessOptions replaced = options("print_variable", "PATH");
  replaced.environment = {{"PATH", "/elsewhere"}};
  auto other = ChildProcess::spawn(replaced);
  ASSERT_TRUE(other.has_value());
  other->wait(kPatience);
  EXPECT_EQ(other->log_tail(1), "/elsewhere\n");
}

TEST_F(ProcessTest, AChildHasItsOwnGroupAndNoDescriptorOfOthers) {
  EXPECT_EQ(output_of("print_group"), "own group\n");
  const int leaked = ::open("/dev/null", O_RDONLY);  // not close-on-exec
  ChildProcess sibling = start("sleep_for_ever");
  ASSERT_TRUE(ready(sibling));
  EXPECT_EQ(output_of("print_descriptors"), "descriptors 3\n");
  ::close(leaked);
}

TEST_F(ProcessTest, WaitingForALivingChildTimesOut) {
  ChildProcess child = start("sleep_for_ever");
  EXPECT_FALSE(child.poll().has_value());
  EXPECT_FALSE(child.wait(1ms).has_value());
}

TEST_F(ProcessTest, StopIsPoliteFirst) {
  ChildProcess child = start("sleep_for_ever");
  ASSERT_TRUE(ready(child));
  ChildProcess* children[] = {&child};
  int killed = -1;
  EXPECT_EQ(stop_children(children, kPatience, &killed)[0].signal, SIGTERM);
  EXPECT_EQ(killed, 0);
}

TEST_F(ProcessTest, StopKillsWhoeverIgnoresItOrIsFrozen) {
  ChildProcess stubborn = start("ignore_sigterm");
  ASSERT_TRUE(ready(stubborn));
  ChildProcess frozen = start("sleep_for_ever");
  ASSERT_TRUE(ready(frozen));
  ASSERT_TRUE(frozen.send_signal(SIGSTOP).has_value());
  siginfo_t stopped{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(frozen.pid()), &stopped, WSTOPPED | WNOWAIT), 0);
  ChildProcess ended = start("exit_with", "5");
  ASSERT_TRUE(ended.wait(kPatience).has_value());
  ChildProcess* children[] = {&stubborn, &frozen, &ended};
  int killed = 0;
  const auto statuses = stop_children(children, 20ms, &killed);
  EXPECT_EQ(statuses[0].signal, SIGKILL);
  EXPECT_EQ(statuses[1].signal, SIGKILL);
  EXPECT_EQ(statuses[2].code, 5);
  EXPECT_EQ(killed, 2);
}

TEST_F(ProcessTest, ASignalToAnEndedChildIsAnError) {
  ChildProcess child = start("exit_with", "0");
  ASSERT_TRUE(child.wait(kPatience).has_value());
  EXPECT_EQ(child.send_signal(SIGTERM).error().code, ErrorCode::kNotFound);
  child.kill();  // must not reach whoever has the pid now
}

TEST_F(ProcessTest, ADestroyedHandleLeavesNoProcess) {
  {
    ChildProcess child = start("follow_parent", path("lock"));
    ASSERT_TRUE(ready(child));
    ASSERT_TRUE(lock_is_held(path("lock")));
  }
  EXPECT_FALSE(lock_is_held(path("lock")));
}

TEST_F(ProcessTest, AKilledParentTakesItsChildrenAlong) {
  ChildProcess parent = start("start_grandchildren", path("lock"));
  ASSERT_TRUE(ready(parent));
  ASSERT_TRUE(eventually([&] {
    return tail_of_file(path("lock1.log"), 1) == "ready\n" &&
           tail_of_file(path("lock2.log"), 1) == "ready\n";
  }));
  ASSERT_TRUE(lock_is_held(path("lock1")));
  ASSERT_TRUE(lock_is_held(path("lock2")));
  ASSERT_TRUE(parent.send_signal(SIGKILL).has_value());
  EXPECT_TRUE(eventually([&] { return !lock_is_held(path("lock1")); }));
  EXPECT_TRUE(eventually([&] { return !lock_is_held(path("lock2")); })) << "its stop hangs";
  EXPECT_NE(tail_of_file(path("lock2.log"), 1).find("the parent process is gone"),
            std::string::npos);
}

TEST_F(ProcessTest, OneChildOfTwoDoesNotHoldTheOthersLifeline) {
  // The first grandchild's lifeline must end although the second was spawned while it was open.
  ChildProcess parent = start("start_grandchildren", path("lock"));
  ASSERT_TRUE(ready(parent));
  ASSERT_TRUE(eventually([&] { return tail_of_file(path("lock1.log"), 1) == "ready\n"; }));
  parent.kill();
  EXPECT_TRUE(eventually([&] { return !lock_is_held(path("lock1")); }));
}

TEST_F(ProcessTest, NoLifelineWithoutAParentThatHoldsOne) {
  ::unsetenv(kLifelineVariable);
  EXPECT_EQ(Lifeline::attach([] {}, 1s), nullptr);
}

TEST_F(ProcessTest, TheWatchdogEndsAHangingStop) {
  ChildProcess child = start("hang_at_exit");
  EXPECT_EQ(child.wait(kPatience)->code, 7);
  EXPECT_EQ(child.log_tail(1), "troupe: the stop took too long\n");
}

TEST(ThreadSettings, CoresAndMathThreadsAreSane) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), static_cast<int>(std::thread::hardware_concurrency()));
  const auto variables = math_thread_environment(2);
  EXPECT_EQ(variables.front(), (std::pair<std::string, std::string>("OMP_NUM_THREADS", "2")));
}

}  // namespace
}  // namespace troupe::actors
