// Runs the built program with a command line in a folder of the test's own.
#pragma once

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/actors/config/config_files.hpp"

namespace troupe::actors {

class CliTest : public ConfigFiles {
 protected:
  struct Outcome {
    int code = -1;
    std::string out, err;
  };

  Outcome troupe(const std::string& arguments) {
    const std::string line = std::string(TROUPE_PROGRAM) + " " + arguments + " >" +
                             path("out").string() + " 2>" + path("err").string();
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents("out"), contents("err")};
  }

 private:
  std::string contents(const std::string& name) {
    std::ifstream stream(path(name));
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
};

}  // namespace troupe::actors
