// One text that configuration is read from, a file or an override, and how its lines are named in
// messages. Plain values; any thread.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <string>

#include "actors/config/reader.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors {

struct Source {
  std::string name;  // "configs/a.yaml" or "--set a.b=c"
  std::string text;
  bool command_line = false;

  // `line` from 0, as YAML marks count.
  std::string place(int line) const;
  Origin origin(int line) const;
};

// Reads a file of at most 4 MiB. `extended_by` says in messages who asked for it; may be empty.
// kNotFound or kIo, naming the file.
Result<Source> file_source(const std::filesystem::path& path, const std::string& extended_by);

// The one document of the text; a null node when it is empty. kInvalidArgument names the line.
Result<YAML::Node> parse(const Source& source);

}  // namespace troupe::actors
