// Configuration files for the tests, in a directory of their own that goes with the test. One
// thread.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace troupe::actors {

class ConfigFiles : public testing::Test {
 protected:
  ConfigFiles() {
    std::string pattern = testing::TempDir() + "troupe_config_XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~ConfigFiles() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::filesystem::path path(const std::string& name) const { return directory_ / name; }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace troupe::actors
