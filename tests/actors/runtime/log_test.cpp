#include "actors/runtime/log.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

namespace troupe::actors {
namespace {

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = testing::TempDir() + "troupe-log-" + std::to_string(::getpid());
    std::filesystem::remove(file_);
  }
  void TearDown() override {
    ASSERT_TRUE(start_logging({}).has_value());
    std::filesystem::remove(file_);
  }
  void start(LogLevel level) {
    ASSERT_TRUE(start_logging({.level = level, .console = false, .file = file_}).has_value());
  }
  std::string content() const {
    flush_log();
    return read();
  }
  std::string read() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }
  std::string file_;
};

TEST_F(LogTest, ALineHasTimeLevelComponentAndMessage) {
  start(LogLevel::kInfo);
  log_info("learner 0", "step 100 {} %s");
  EXPECT_TRUE(std::regex_match(
      content(),
      std::regex(
          R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} info    \[learner 0\] step 100 \{\} %s\n)")))
      << content();
}

TEST_F(LogTest, LowerLevelsAreLeftOut) {
  start(LogLevel::kWarning);
  log_debug("a", "one");
  log_info("a", "two");
  log_warning("a", "three");
  log_error("a", "four");
  EXPECT_EQ(content().find("two"), std::string::npos);
  EXPECT_NE(content().find("three"), std::string::npos);
  EXPECT_NE(content().find("four"), std::string::npos);
}

TEST_F(LogTest, ErrorsAreWrittenAtOnce) {
  start(LogLevel::kInfo);
  log_error("a", "urgent");
  EXPECT_NE(read().find("urgent"), std::string::npos);
}

TEST_F(LogTest, AForeignTextCannotForgeALine) {
  start(LogLevel::kInfo);
  log_info("peer\n2026 error", "x\r\n\x1b[31mred");
  const std::string text = content();
  EXPECT_NE(text.find(R"([peer\n2026 error] x\x0d\n\x1b[31mred)"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(LogTest, ThreadsNeverMixTheirLines) {
  start(LogLevel::kInfo);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 500; ++i) log_info("thread", std::string(200, 'x'));
    });
  for (std::thread& thread : threads) thread.join();
  std::istringstream lines(content());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    ASSERT_TRUE(line.ends_with("] " + std::string(200, 'x')));
  EXPECT_EQ(count, 2000);
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsNamedAndTheOldLoggerStays) {
  start(LogLevel::kInfo);
  const auto failed = start_logging({.console = false, .file = "/proc/nonexistent/log"});
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kIo);
  EXPECT_NE(failed.error().message.find("/proc/nonexistent/log"), std::string::npos);
  log_info("a", "still here");
  EXPECT_NE(content().find("still here"), std::string::npos);
}

TEST_F(LogTest, AFullDiskLosesLinesButIsCounted) {
  ASSERT_TRUE(start_logging({.console = false, .file = "/dev/full"}).has_value());
  const auto before = lost_log_lines();
  log_error("a", std::string(100000, 'x'));
  EXPECT_GT(lost_log_lines(), before);
}

TEST_F(LogTest, LevelsAreReadByName) {
  EXPECT_EQ(parse_log_level("warning").value(), LogLevel::kWarning);
  EXPECT_NE(parse_log_level("loud").error().message.find("'loud'"), std::string::npos);
}

}  // namespace
}  // namespace troupe::actors
