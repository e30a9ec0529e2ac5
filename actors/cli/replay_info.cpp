// `troupe replay info`: what a table or an episode file holds, as lines or as one JSON object.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>

#include "actors/cli/replay_source.hpp"
#include "actors/cli/replay_verbs.hpp"
#include "actors/cli/verbs.hpp"
#include "replay/offline/episode_reader.hpp"
#include "replay/offline/stored_episodes.hpp"

namespace troupe::actors::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InfoCommand {
  std::filesystem::path source;
  bool json = false;
};

struct EpisodeSums {
  std::uint64_t episodes = 0, complete = 0, steps = 0, skipped = 0;
  double returns = 0;  // of the complete ones
};

Result<EpisodeSums> sum_of(replay::EpisodeSource& source) {
  EpisodeSums sums;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const auto episode = source.read(i);
    if (!episode) {
      if (episode.error().code != ErrorCode::kNotFinite &&
          episode.error().code != ErrorCode::kInvalidEpisode)
        return tl::unexpected(episode.error());
      ++sums.skipped;
      continue;
    }
    ++sums.episodes;
    sums.steps += episode->steps.header.steps;
    if (!episode->complete()) continue;
    ++sums.complete;
    sums.returns +=
        std::accumulate(episode->steps.reward.begin(), episode->steps.reward.end(), 0.0);
  }
  return sums;
}

void put_sums(Json& json, const EpisodeSums& sums) {
  json["steps"] = sums.steps;
  json["episodes"] = sums.episodes;
  json["complete_episodes"] = sums.complete;
  json["skipped_episodes"] = sums.skipped;
  json["mean_return"] = nullptr;
  if (sums.complete > 0) json["mean_return"] = sums.returns / static_cast<double>(sums.complete);
}

void put_bytes(Json& json, std::uint64_t bytes, std::uint64_t transitions) {
  json["bytes"] = bytes;
  json["bytes_per_transition"] = nullptr;
  if (transitions > 0)
    json["bytes_per_transition"] = static_cast<double>(bytes) / static_cast<double>(transitions);
}

Json columns_of(const replay::Signature& signature) {
  Json columns = Json::array();
  for (const auto* list : {&signature.observation, &signature.step})
    for (const Column& column : *list)
      columns.push_back(
          {{"name", column.name}, {"type", name_of(column.dtype)}, {"shape", column.shape}});
  columns.push_back({{"name", "reward"}, {"type", "f32"}, {"shape", Json::array()}});
  return columns;
}

Json ledger_of(const replay::TableStatistics& s) {
  return {{"inserted", s.inserted_steps}, {"prefilled", s.prefilled_steps},
          {"held", s.held_steps},         {"removed", s.removed_steps},
          {"lost", s.lost_steps},         {"pending", s.pending_steps}};
}

Result<Json> table_info(const std::filesystem::path& path) {
  const auto table = load_table(path);
  if (!table) return tl::unexpected(table.error());
  replay::StoredEpisodes episodes((*table)->snapshot());
  const auto sums = sum_of(episodes);
  if (!sums) return tl::unexpected(sums.error());
  const replay::TableStatistics statistics = (*table)->statistics();
  const replay::TableOptions& options = (*table)->options();
  std::error_code ignored;
  Json json{{"file", path.string()}, {"kind", "table"}};
  put_sums(json, *sums);
  json["items"] = statistics.held_items;
  json["capacity"] = options.capacity;
  put_bytes(json, statistics.bytes_held, statistics.held_steps);
  json["memory_bytes"] = statistics.memory_bytes;
  json["memory_per_transition"] = nullptr;
  if (statistics.held_steps > 0)
    json["memory_per_transition"] =
        static_cast<double>(statistics.memory_bytes) / static_cast<double>(statistics.held_steps);
  json["file_bytes"] = std::filesystem::file_size(path, ignored);
  json["columns"] = columns_of((*table)->signature());
  json["spec_hash"] = (*table)->signature().spec_hash;
  json["n_step"] = options.n_step;
  json["discount"] = options.discount;
  json["selector"] = options.selector;
  json["remover"] = options.remover;
  json["limiter"] = statistics.limiter;
  json["sampled"] = statistics.sampled_items;
  json["ledger"] = ledger_of(statistics);
  return json;
}

Result<Json> file_info(const std::filesystem::path& path) {
  const auto file = replay::open_episode_file(path, {});
  if (!file) return tl::unexpected(file.error());
  const auto sums = sum_of(**file);
  if (!sums) return tl::unexpected(sums.error());
  const replay::EpisodeFileInfo& info = (*file)->info();
  Json json{{"file", path.string()},
            {"kind", "episodes"},
            {"layout", info.layout},
            {"environment", info.environment}};
  put_sums(json, *sums);
  json["steps_left_out"] = info.steps_left_out;
  put_bytes(json, info.bytes, sums->steps);
  json["columns"] = info.columns;
  json["spec_hash"] = info.spec_hash;
  json["action_units"] = info.policy_units ? "policy" : "environment";
  return json;
}

// "name: value", one a line; what is not there is left out.
void print_text(const Json& json) {
  std::printf("%s\n", json["file"].get<std::string>().c_str());
  for (const auto& [name, value] : json.items()) {
    if (name == "file" || value.is_null()) continue;
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (name == "ledger") {
      text = value["inserted"].dump() + " inserted + " + value["prefilled"].dump() +
             " prefilled = " + value["held"].dump() + " held + " + value["removed"].dump() +
             " removed + " + value["lost"].dump() + " lost steps";
    } else if (name == "columns") {
      text.clear();
      for (const Json& column : value)
        text += (text.empty() ? "" : ", ") +
                (column.is_string()
                     ? column.get<std::string>()
                     : column["name"].get<std::string>() + " " + column["type"].get<std::string>() +
                           " " + column["shape"].dump());
    }
    std::printf("  %-21s %s\n", name.c_str(), text.c_str());
  }
}

Result<Json> info_of(const std::filesystem::path& source) {
  if (replay::is_hdf5_file(source))
    return file_info(source).map([](Json json) { return Json::array({std::move(json)}); });
  const auto found = find_tables(source);
  if (!found) return tl::unexpected(found.error());
  Json all = Json::array();
  for (const auto& path : found->tables) {
    auto info = table_info(path);
    if (!info) return tl::unexpected(info.error());
    if (!found->environment.empty()) (*info)["environment"] = found->environment;
    all.push_back(*std::move(info));
  }
  return all;
}

int run_info(const InfoCommand& command) {
  const auto info = info_of(command.source);
  if (!info) {
    print_error(info.error().message);
    return exit_code_of(info.error());
  }
  if (command.json)
    std::printf("%s\n", Json{{"files", *info}}.dump().c_str());
  else
    for (const Json& one : *info) print_text(one);
  return 0;
}

}  // namespace

void add_replay_info(CLI::App& replay, int& exit_code) {
  CLI::App* verb = replay.add_subcommand("info", "Say what tables or a file of episodes hold");
  verb->footer(
      "Example: troupe replay info runs/first\n"
      "         troupe replay info episodes.hdf5 --json");
  const auto command = std::make_shared<InfoCommand>();
  verb->add_option("SOURCE", command->source,
                   "A run's directory, a checkpoint's, a table's file, or a file of episodes")
      ->required();
  verb->add_flag("--json", command->json, "One JSON object");
  verb->callback([command, &exit_code] { exit_code = run_info(*command); });
}

}  // namespace troupe::actors::cli
