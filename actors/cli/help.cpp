// `troupe help`: the verbs, every configuration key, and the environments.
#include <cstdio>
#include <memory>

#include "actors/cli/verbs.hpp"
#include "actors/config/nearest.hpp"
#include "actors/config/reference.hpp"
#include "envs/registry.hpp"

namespace troupe::actors::cli {
namespace {

int print_config_help(const std::string& key, bool schema) {
  if (schema || key.empty()) {
    std::fputs((schema ? reference_schema() : reference_text()).c_str(), stdout);
    return 0;
  }
  const auto text = reference_text(key);
  if (!text) {
    print_error(text.error().message);
    return 2;
  }
  std::fputs(text->c_str(), stdout);
  return 0;
}

int print_environments() {
  std::size_t width = 0;
  for (const envs::EnvEntry& entry : envs::env_entries())
    width = std::max(width, entry.name.size());
  for (const envs::EnvEntry& entry : envs::env_entries()) {
    std::printf("  %-*s  %s\n", static_cast<int>(width), entry.name.c_str(), entry.summary.c_str());
  }
  return 0;
}

int print_verb_help(const CLI::App& program, const std::string& name) {
  if (name.empty()) {
    // program.help() would explain the verb that was given, which is `help`.
    const auto formatter = program.get_formatter();
    std::fputs(formatter->make_help(&program, "troupe", CLI::AppFormatMode::Normal).c_str(),
               stdout);
    return 0;
  }
  std::vector<std::string> names;
  for (const CLI::App* verb : program.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_name() == name) {
      std::fputs(verb->help("troupe").c_str(), stdout);
      return 0;
    }
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  }
  const std::string nearest = nearest_name(name, names);
  print_error(
      "there is no verb " + name +
      (nearest.empty() ? "; `troupe --help` lists all" : "; did you mean " + nearest + "?"));
  return 2;
}

}  // namespace

void add_help(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("help", "Explain verbs, configuration keys and environments");
  verb->footer(
      "Example: troupe help run\n"
      "         troupe help config d4pg.batch\n"
      "         troupe help config --schema > troupe.schema.json\n"
      "         troupe help environments");
  const auto name = std::make_shared<std::string>();
  verb->add_option("VERB", *name, "Verb to explain");
  CLI::App* config = verb->add_subcommand("config", "Every configuration key");
  CLI::App* environments = verb->add_subcommand("environments", "The environments, by name");

  const auto key = std::make_shared<std::string>();
  const auto schema = std::make_shared<bool>(false);
  config->add_option("KEY", *key, "One key or section");
  config->add_flag("--schema", *schema, "A JSON schema for editors");
  config->footer("Example: troupe help config replay.samples_per_insert");
  environments->footer("Example: troupe help environments");

  config->callback([key, schema, &exit_code] { exit_code = print_config_help(*key, *schema); });
  environments->callback([&exit_code] { exit_code = print_environments(); });
  verb->callback([&program, name, config, environments, &exit_code] {
    if (!*config && !*environments) exit_code = print_verb_help(program, *name);
  });
}

}  // namespace troupe::actors::cli
