// Runs the virtual environment's Python, whose numpy and h5py judge what is written here. Needs
// TEST_PYTHON, the interpreter, as a definition.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace troupe {

struct PythonRun {
  int status;          // 0: no error
  std::string output;  // stdout and stderr
};

// `code` must not contain double quotes or dollar signs.
inline PythonRun run_python(const std::string& code) {
  std::FILE* pipe = popen((std::string(TEST_PYTHON) + " -c \"" + code + "\" 2>&1").c_str(), "r");
  if (!pipe) return {-1, "popen failed"};
  std::string output;
  std::array<char, 4096> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe)) output += buffer.data();
  return {pclose(pipe), output};
}

}  // namespace troupe
