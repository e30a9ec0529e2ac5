// Starts runtime_test_child for the tests of processes and signals. One thread.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "actors/runtime/process.hpp"

namespace troupe::actors {

class ChildFixture : public testing::Test {
 protected:
  static constexpr std::chrono::seconds kPatience{20};

  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 ("troupe-process-" + std::to_string(::getpid()) + "-" +
                  testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  ProcessOptions options(const std::string& mode, const std::string& argument = "") const {
    return {.name = "test child",
            .arguments = {mode, argument},
            .executable = TEST_CHILD_PATH,
            .log_file = path("log")};
  }
  ChildProcess start(const std::string& mode, const std::string& argument = "") const {
    auto child = ChildProcess::spawn(options(mode, argument));
    if (!child) throw std::runtime_error(child.error().message);
    return std::move(*child);
  }
  // Runs the mode to its end; returns what it wrote.
  std::string output_of(const std::string& mode, const std::string& argument = "") const {
    ChildProcess child = start(mode, argument);
    EXPECT_TRUE(child.wait(kPatience).has_value());
    return child.log_tail(100);
  }

  // Until `condition` holds; the deadline only bounds a failing test.
  static bool eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }
  static bool ready(const ChildProcess& child) {
    return eventually([&] { return child.log_tail(100).starts_with("ready"); });
  }

  std::filesystem::path directory_;
};

}  // namespace troupe::actors
