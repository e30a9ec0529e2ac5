// troupe_simulate < runs.json: one line of JSON for each line of input, which holds options of a
// simulated run (options.hpp) by name; what is left out keeps its default. `--help` lists them.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "actors/simulation/simulate.hpp"

namespace {

using namespace troupe::actors::simulation;
using Json = nlohmann::json;

struct Reader {
  const Json& json;
  std::set<std::string> known = {};

  template <class T>
  void field(const char* name, T& value, const char*) {
    known.insert(name);
    if (json.contains(name)) json.at(name).get_to(value);
  }
};

struct Lister {
  template <class T>
  void field(const char* name, const T& value, const char* doc) {
    std::printf("  %-22s%s (%s)\n", name, doc, Json(value).dump().c_str());
  }
};

Options read(const std::string& line) {
  const Json json = Json::parse(line);
  Options options;
  Reader reader{json};
  describe(reader, options);
  for (const auto& [name, value] : json.items())
    if (reader.known.count(name) == 0)
      throw std::runtime_error("there is no option '" + name + "'; --help lists them");
  return options;
}

Json to_json(const Figures& f) {
  return {{"actor_steps", f.actor_steps},
          {"updates", f.updates},
          {"samples_per_insert", f.samples_per_insert},
          {"actors_blocked", f.actors_blocked},
          {"learner_starved", f.learner_starved},
          {"learner_reducing", f.learner_reducing},
          {"coordinator", f.coordinator},
          {"cores", f.cores},
          {"busiest_host", f.busiest_host},
          {"shard", f.shard},
          {"sends", f.sends},
          {"receives", f.receives},
          {"policy_lag", f.policy_lag},
          {"flush_steps", f.flush_steps},
          {"events", f.events},
          {"limit", f.limit}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    std::puts("troupe_simulate: simulates a run for each line of JSON on its input.\nOptions:");
    Options defaults;
    Lister lister;
    describe(lister, defaults);
    return std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  try {
    for (std::string line; std::getline(std::cin, line);) {
      if (line.empty()) continue;
      const auto figures = simulate(read(line));
      if (!figures) throw std::runtime_error(figures.error().message);
      std::puts(to_json(*figures).dump().c_str());
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "troupe_simulate: %s\n", error.what());
    return 2;
  }
  return 0;
}
