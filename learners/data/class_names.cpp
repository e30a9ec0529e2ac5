#include "learners/data/class_names.hpp"

#include <sstream>

#include "envs/spec/files.hpp"

namespace troupe::learners::data {

Result<std::vector<std::string>> read_class_names(const std::filesystem::path& file) {
  auto text = read_text(file);
  if (!text) return tl::unexpected(text.error());
  std::vector<std::string> names;
  std::istringstream lines(*std::move(text));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  return names;
}

std::vector<std::string> numbered_classes(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace troupe::learners::data
