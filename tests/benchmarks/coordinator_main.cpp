// The real coordinator under many connected nodes: troupe_coordinator_benchmark [NODES [SECONDS]].
// Light nodes (tests/actors/roles/light_nodes.hpp), each a process with a CAF connection of its
// own, send what environment actors of `probe/const` send. The last line is JSON: messages a second
// that the coordinator handled, and the share of one core that its process took, its telemetry
// included, in all and by kind of thread.
#include <dirent.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/actors/roles/light_nodes.hpp"

namespace {

using namespace troupe::actors;

// Nanoseconds of CPU time of this process's threads, by name.
std::map<std::string, double> cpu_times() {
  std::map<std::string, double> times;
  DIR* tasks = ::opendir("/proc/self/task");
  while (const dirent* entry = tasks ? ::readdir(tasks) : nullptr) {
    if (entry->d_name[0] == '.') continue;
    const std::string folder = std::string("/proc/self/task/") + entry->d_name;
    std::string name;
    double nanoseconds = 0;
    std::getline(std::ifstream(folder + "/comm") >> std::ws, name);
    std::ifstream(folder + "/schedstat") >> nanoseconds;
    times[name] += nanoseconds;
  }
  if (tasks) ::closedir(tasks);
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "node") == 0) return light_node_main(argc, argv);
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 300;
  const int seconds = argc > 2 ? std::atoi(argv[2]) : 10;
  const auto directory =
      std::filesystem::temp_directory_path() / ("troupe-light-" + std::to_string(::getpid()));
  int code = 1;
  {
    LightRun run(light_options(nodes), directory);
    if (!run.wait_ready(std::chrono::seconds(60))) {
      std::fprintf(stderr, "not every node served within 60 s; the log begins:\n%s\n",
                   run.log().substr(0, 2000).c_str());
    } else {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      const auto before = cpu_times();
      const std::uint64_t first = run.messages();
      const auto begun = std::chrono::steady_clock::now();
      std::this_thread::sleep_for(std::chrono::seconds(seconds));
      const double elapsed =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      const std::uint64_t handled = run.messages() - first;
      nlohmann::json threads = nlohmann::json::object();
      double total = 0;
      for (const auto& [name, time] : cpu_times()) {
        const auto was = before.find(name);
        const double share = (time - (was == before.end() ? 0 : was->second)) / elapsed / 1e9;
        total += share;
        if (share > 0.001) threads[name] = share;
      }
      const bool silent = run.log().find("does not answer") != std::string::npos;
      std::printf("%s\n",
                  nlohmann::json{{"name", "coordinator"},
                                 {"nodes", nodes},
                                 {"messages_per_second", static_cast<double>(handled) / elapsed},
                                 {"cores", total},
                                 {"cores_by_thread", threads},
                                 {"nodes_fell_silent", silent}}
                      .dump()
                      .c_str());
      code = 0;
    }
    if (!run.stop(std::chrono::seconds(30))) code = 1;
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  std::fflush(stdout);
  std::_Exit(code);
}
