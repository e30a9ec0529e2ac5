// How the coordinator's counters stand in a checkpoint's state.json.
#include <nlohmann/json.hpp>

#include "actors/roles/coordinator.hpp"

namespace troupe::actors {

using Json = nlohmann::json;

namespace {

Json to_json(const ScaledCounts::Count& count) {
  return {{"scaled", count.scaled}, {"configured", count.configured}};
}

ScaledCounts::Count count_from(const Json& json) {
  return {json.at("scaled").get<std::uint32_t>(), json.at("configured").get<std::uint32_t>()};
}

}  // namespace

std::string counters_json(const RunState& state, RunState::Time now) {
  const RunCounters& counters = state.counters();
  const RunState::Saved saved = state.saved();
  std::uint64_t held = 0, removed = counters.retired_inserted + counters.retired_prefilled,
                prefilled = counters.retired_prefilled;
  std::vector<std::uint64_t> inserted;
  for (const ShardLedger& shard : saved.shards) {
    held += shard.held;
    removed += shard.removed;
    prefilled += shard.prefilled;
    inserted.push_back(shard.inserted);
  }
  UpdateCounts all;
  Json servers = Json::array();
  for (const UpdateCounts& counts : saved.sent) {
    servers.push_back(
        {{"sent", counts.sent}, {"applied", counts.applied}, {"rolled_back", counts.rolled_back}});
    all.sent += counts.sent;
    all.applied += counts.applied;
    all.rolled_back += counts.rolled_back;
  }
  Json json{{"lost_with_shard", saved.lost_with_shard},
            {"inserted", inserted},
            {"wall_ms", state.wall_ms(now)},
            {"next_evaluation", counters.next_evaluation},
            {"incarnations", counters.incarnations},
            {"version", saved.version},
            {"scaled",
             {{"shards", to_json(counters.scaled.shards)},
              {"gone_shards", counters.scaled.gone_shards},
              {"actors", to_json(counters.scaled.actors)},
              {"learners", to_json(counters.scaled.learners)}}},
            // Of shards that were scaled away; within the ledger's inserted, prefilled and removed.
            {"retired",
             {{"inserted", counters.retired_inserted}, {"prefilled", counters.retired_prefilled}}},
            {"ledger",
             {{"inserted", saved.inserted()},
              {"prefilled", prefilled},
              {"held", held},
              {"removed", removed},
              {"lost_with_shard", saved.lost_with_shard}}}};
  // Of parameter servers: sent = applied + rolled_back, of each and in all.
  if (!saved.sent.empty())
    json["updates"] = {{"sent", all.sent},
                       {"applied", all.applied},
                       {"rolled_back", all.rolled_back},
                       {"servers", servers}};
  return json.dump(2);
}

Result<RunCounters> counters_from_json(const std::string& json) {
  try {
    const Json parsed = Json::parse(json);
    RunCounters counters;
    counters.lost_with_shard = parsed.at("lost_with_shard").get<std::uint64_t>();
    counters.wall_ms = parsed.at("wall_ms").get<std::uint64_t>();
    counters.next_evaluation = parsed.at("next_evaluation").get<std::uint64_t>();
    counters.inserted = parsed.at("inserted").get<std::vector<std::uint64_t>>();
    if (parsed.contains("scaled")) {  // a run with a fixed schedule knows neither
      const Json& scaled = parsed.at("scaled");
      counters.scaled = {.shards = count_from(scaled.at("shards")),
                         .gone_shards = scaled.at("gone_shards").get<std::set<std::uint32_t>>(),
                         .actors = count_from(scaled.at("actors")),
                         .learners = count_from(scaled.at("learners"))};
      counters.retired_inserted = parsed.at("retired").at("inserted").get<std::uint64_t>();
      counters.retired_prefilled = parsed.at("retired").at("prefilled").get<std::uint64_t>();
    }
    counters.incarnations = parsed.at("incarnations").get<std::map<std::string, std::uint32_t>>();
    if (parsed.contains("updates"))
      for (const Json& server : parsed.at("updates").at("servers"))
        counters.updates.push_back({server.at("sent").get<std::uint64_t>(),
                                    server.at("applied").get<std::uint64_t>(),
                                    server.at("rolled_back").get<std::uint64_t>()});
    return counters;
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kCorrupt,
                std::string("a checkpoint's state.json cannot be read: ") + error.what());
  }
}

}  // namespace troupe::actors
