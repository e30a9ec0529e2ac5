// Which options a resumed run has: those saved in its run directory, unless the command line
// overrides them now; and what differs, to be logged. Pure apart from reading files; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "actors/config/reader.hpp"

namespace troupe::actors {

struct Difference {
  std::string key;
  std::string saved, now;  // as in YAML
};
// In the order of the description; empty when all options are equal.
std::vector<Difference> differences(const RunOptions& saved, const RunOptions& now);

struct ResumedConfig {
  LoadedConfig config;  // saved options, with `overrides` on top
  std::vector<std::string>
      lines;  // one per difference: what was saved, what is asked for, which counts
};

// `saved` is the run directory's config.yaml, `given` the file named on the command line now.
// Errors of either file as in load_config; kInvalidArgument for what a run keeps for ever: with or
// without environment actors, how its saved tables draw (replay.selector, priority_exponent), and
// its number of parameter servers.
Result<ResumedConfig> resume_config(const std::filesystem::path& saved,
                                    const std::filesystem::path& given,
                                    const std::vector<std::string>& overrides = {});

}  // namespace troupe::actors
