// Class names from a text file, one a line. Private to this folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::learners::data {

// Empty lines do not count. kNotFound or kIo naming the file.
Result<std::vector<std::string>> read_class_names(const std::filesystem::path& file);
// "0" to "count - 1".
std::vector<std::string> numbered_classes(std::size_t count);

}  // namespace troupe::learners::data
