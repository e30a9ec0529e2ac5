// `troupe version`.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "actors/cli/verbs.hpp"
#include "actors/cli/versions.hpp"

namespace troupe::actors::cli {

void add_version(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("version", "Print the versions of Troupe and its libraries");
  verb->footer("Example: troupe version --json");
  const auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "One JSON object");
  verb->callback([json, &exit_code] {
    const std::string text =
        *json ? nlohmann::json(library_versions()).dump() + "\n" : version_text();
    std::fputs(text.c_str(), stdout);
    exit_code = 0;
  });
}

}  // namespace troupe::actors::cli
