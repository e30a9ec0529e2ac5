// Reads a run's configuration, strictly: every key must be described, every value of its type and
// in its range, and all mistakes are listed at once. Pure apart from reading files; any thread.
//
//   extends: base.yaml      # relative to this file; later keys override
//   seed: 0
//   d4pg: {learning_rate: 1e-4}
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "actors/config/description.hpp"
#include "actors/config/renamed.hpp"
#include "actors/config/run_options.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors {

// Where a value comes from.
struct Origin {
  enum class Kind { kDefault, kFile, kCommandLine };
  Kind kind = Kind::kDefault;
  std::string file;  // of kFile
  int line = 0;      // of kFile, from 1

  std::string text() const;  // "default", "configs/a.yaml:3" or "command line"
  bool operator==(const Origin&) const = default;
};

// By dotted key; a key that is not there has its default.
using Origins = std::map<std::string, Origin>;

struct LoadedConfig {
  RunOptions options;
  Origins origins;
  std::string hash;                // config_hash(options)
  std::vector<std::string> notes;  // keys honoured under a former name: to be logged

  const Origin& origin(const std::string& key) const;
};

// `overrides`: "a.b=c" each, as after --set, the value in YAML ("replay.capacity=1e6",
// "d4pg.policy=[64, 64]"); the last of two for the same key wins. Cross-field checks
// (actors/config/checks.hpp) are made too. Errors: kNotFound when there is no such file, otherwise
// kInvalidArgument with one line per mistake.
Result<LoadedConfig> load_config(const std::filesystem::path& path,
                                 const std::vector<std::string>& overrides = {});

// The same for a text, without `extends`; `name` stands for the file in messages.
Result<LoadedConfig> parse_config(const std::string& text, const std::string& name);

// What load_config is made of, for any described struct: reads into `description`'s struct, appends
// mistakes, and notes about honoured former names.
struct Reading {
  Origins origins;
  std::vector<std::string> mistakes;
  std::vector<std::string> notes;
  bool missing = false;  // the first file does not exist
};
Reading read_config(const Description& description, const std::filesystem::path& path,
                    const std::vector<std::string>& overrides,
                    std::span<const RenamedKey> renamed = kRenamedKeys);

}  // namespace troupe::actors
