// The list of verbs, and the answers to a command line that none of them understands.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "actors/cli/replay_source.hpp"
#include "actors/cli/verbs.hpp"
#include "actors/cli/versions.hpp"
#include "actors/config/nearest.hpp"

namespace troupe::actors::cli {
namespace {

constexpr int kBadUsage = 2;

// The verb, or the verb's verb, that the command line got to.
const CLI::App& deepest(const CLI::App& app) {
  const CLI::App* current = &app;
  while (!current->get_subcommands().empty()) current = current->get_subcommands().front();
  return *current;
}

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// What is wrong with the words that no option or verb took; empty when there are none.
std::string explain_extras(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) return {};
  const std::string word = extras.front().substr(0, extras.front().find('='));
  const bool option = word.starts_with("-");
  const std::vector<std::string> verbs = verb_names(app);
  const std::string nearest = nearest_name(word, option ? option_names(app) : verbs);
  std::string text = option          ? "unknown option "
                     : verbs.empty() ? "unexpected argument "
                                     : "unknown verb ";
  text += word;
  if (!nearest.empty()) text += "; did you mean " + nearest + "?";
  return text;
}

int refuse(const CLI::App& program, const std::string& reason) {
  const CLI::App& verb = deepest(program);
  const std::string name = full_name(verb);
  std::string explained = explain_extras(verb);
  if (explained.empty() && !verb_names(verb).empty()) {
    explained = "a verb is required, one of";
    for (const std::string& choice : verb_names(verb)) explained += " " + choice;
  }
  std::fprintf(stderr, "%s: %s\nTry `%s --help`.\n", name.c_str(),
               (explained.empty() ? reason : explained).c_str(), name.c_str());
  return kBadUsage;
}

void add_verbs(CLI::App& program, int& exit_code) {
  add_run(program, exit_code);
  add_node(program, exit_code);
  add_check(program, exit_code);
  add_watch(program, exit_code);
  add_status(program, exit_code);
  add_scale(program, exit_code);
  add_drain(program, exit_code);
  add_stop(program, exit_code);
  add_eval(program, exit_code);
  add_predict(program, exit_code);
  add_sample(program, exit_code);
  add_bench(program, exit_code);
  add_replay(program, exit_code);
  add_certificates(program, exit_code);
  add_deploy(program, exit_code);
  add_help(program, exit_code);
  add_version(program, exit_code);
}

int parse_and_run(CLI::App& program, int argc, char** argv, int& exit_code) {
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(program.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion& version) {
    std::fputs(version.what(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    return refuse(program, error.what());
  }
  return exit_code;
}

}  // namespace

void print_error(const std::string& message) {
  std::size_t begin = 0;
  while (begin <= message.size()) {
    const std::size_t end = std::min(message.find('\n', begin), message.size());
    std::fprintf(stderr, "troupe: %s\n", message.substr(begin, end - begin).c_str());
    begin = end + 1;
  }
}

int refuse(const Error& error) {
  print_error(error.message);
  return exit_code_of(error);
}

CLI::Option* add_overrides(CLI::App& verb, std::vector<std::string>& overrides) {
  return verb.add_option("--set", overrides, "Override one key; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

int dispatch(int argc, char** argv) {
  int exit_code = 0;
  CLI::App program("Actor-based asynchronous reinforcement learning.", "troupe");
  program.require_subcommand(1);
  program.set_version_flag("--version", [] { return version_text(); });
  program.get_formatter()->column_width(32);
  program.footer("Example: troupe run configs/cartpole_swingup.yaml --set seed=2");
  add_verbs(program, exit_code);
  if (argc < 2) {
    std::fputs(program.help().c_str(), stderr);
    return kBadUsage;
  }
  try {
    return parse_and_run(program, argc, argv, exit_code);
  } catch (const std::exception& exception) {
    print_error(std::string("failed unexpectedly: ") + exception.what());
  }
  return 1;
}

}  // namespace troupe::actors::cli
