// Implements the shards of one node.
#include "actors/roles/shard_host.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "actors/roles/checkpoint_store.hpp"
#include "actors/roles/prefill.hpp"
#include "actors/roles/table_setup.hpp"
#include "actors/runtime/thread_settings.hpp"
#include "envs/registry.hpp"
#include "replay/checkpoint.hpp"

namespace troupe::actors {

std::string ShardHost::file_name(std::uint32_t shard) {
  return "replay-" + std::to_string(shard) + ".table";
}

Result<std::unique_ptr<ShardHost>> ShardHost::open(const RoleContext& context, std::uint32_t first,
                                                   std::uint32_t count, bool remote_samples) {
  const RunOptions& options = context.options;
  auto env =
      envs::make_env(options.environment.name, {.time_limit = options.environment.time_limit});
  if (!env) return tl::unexpected(env.error());
  const replay::Signature signature = replay::signature_of((*env)->spec());
  std::unique_ptr<ShardHost> host(new ShardHost(first));
  for (std::uint32_t shard = first; shard < first + count; ++shard) {
    auto table =
        replay::Table::create(table_options(options, shard, context.assignment.epoch), signature);
    if (!table) return tl::unexpected(table.error());
    if (auto filled = host->load(context, (*env)->spec(), shard, **table); !filled)
      return tl::unexpected(filled.error());
    const std::string name = "shard" + std::to_string(shard);
    std::shared_ptr<replay::Table> shared = std::move(*table);
    auto server =
        ShardServer::open(shared, context.channel_endpoint(name),
                          remote_samples ? context.channel_endpoint(name + "-samples") : "");
    if (!server) return tl::unexpected(server.error());
    if (const std::string& folder = context.assignment.socket_directory; !folder.empty()) {
      auto mark = StepMark::create(StepMark::path_of(folder, shard, context.assignment.incarnation),
                                   shared->statistics().inserted_steps);
      if (!mark) return tl::unexpected(mark.error());
      (*server)->keep_mark(*std::move(mark));
    }
    // Until the coordinator says what the others have.
    if (options.stop.actor_steps > 0 && options.actors.count > 0)
      (*server)->limit(shared->statistics().inserted_steps);
    host->tables_.push_back(std::move(shared));
    host->servers_.push_back(std::move(*server));
  }
  return host;
}

// From the assignment's checkpoint, else from the file that new tables begin with.
Result<void> ShardHost::load(const RoleContext& context, const EnvSpec& spec, std::uint32_t shard,
                             replay::Table& table) {
  const std::string& from = context.assignment.restore_directory;
  // The file is dealt to the configured shards: one that was added later has no part in it.
  const bool filled =
      !context.options.replay.prefill.empty() && shard < context.options.replay.shards;
  if (!from.empty()) {
    auto restored = replay::restore(table, std::filesystem::path(from) / file_name(shard));
    if (restored) {
      notes_.insert(notes_.end(), restored->begin(), restored->end());
      return {};
    }
    if (restored.error().code != ErrorCode::kNotFound) return tl::unexpected(restored.error());
    notes_.push_back("shard " + std::to_string(shard) + " has no saved table and starts " +
                     (filled ? "with its part of replay.prefill" : "empty") + ": " +
                     restored.error().message);
  }
  if (!filled) return {};
  auto note = prefill_table(context.options, spec, shard, table);
  if (!note) return tl::unexpected(note.error());
  prefilled_.push_back(*std::move(note));
  return {};
}

ShardHost::~ShardHost() { stop(); }

RoleReady ShardHost::ready_message() const {
  RoleReady ready;
  ready.first_shard = first_;
  nlohmann::json inserted = nlohmann::json::array();
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    ready.data_endpoints.push_back(servers_[i]->data_endpoint());
    if (!servers_[i]->sample_endpoint().empty())
      ready.sample_endpoints.push_back(servers_[i]->sample_endpoint());
    inserted.push_back(tables_[i]->statistics().inserted_steps);
  }
  ready.state_json = nlohmann::json{{"inserted_steps", inserted}}.dump();
  return ready;
}

void ShardHost::serve(const RoleContext& context) {
  const auto tell = [&](const char* level, const char* kind, const std::string& text) {
    caf::anon_send(context.parent, Event{context.node, level, kind, text});
  };
  for (const std::string& note : notes_) tell("warning", "restore", note);
  for (const std::string& note : prefilled_) tell("info", "prefill", note);
  for (const auto& server : servers_)
    threads_.emplace_back([server = server.get()](const std::stop_token& stop) {
      name_thread("shard");
      while (!stop.stop_requested()) server->serve(std::chrono::milliseconds{20});
    });
}

void ShardHost::stop() {
  for (const auto& table : tables_) table->close();
  threads_.clear();  // asks each to stop and joins it
}

void ShardHost::limit(const StepLimits& limits) {
  for (std::size_t i = 0; i < servers_.size() && first_ + i < limits.inserted.size(); ++i)
    servers_[i]->limit(limits.inserted[first_ + i]);
}

std::chrono::milliseconds ShardHost::quiet_for() const {
  auto shortest = std::chrono::milliseconds::max();
  for (const auto& server : servers_) shortest = std::min(shortest, server->quiet_for());
  return shortest;
}

std::vector<replay::TableSnapshot> ShardHost::cut() const {
  std::vector<replay::TableSnapshot> cuts;
  for (const auto& table : tables_) cuts.push_back(table->snapshot());
  return cuts;
}

nlohmann::json ShardHost::ledgers(const std::vector<replay::TableSnapshot>& cuts) {
  nlohmann::json ledgers = nlohmann::json::array();
  for (const replay::TableSnapshot& cut : cuts)
    ledgers.push_back({{"shard", cut.options.shard},
                       {"inserted", cut.statistics.inserted_steps},
                       {"held", cut.statistics.held_steps},
                       {"removed", cut.statistics.removed_steps},
                       {"prefilled", cut.statistics.prefilled_steps}});
  return ledgers;
}

Result<std::vector<FilePart>> ShardHost::write_cuts(const std::vector<replay::TableSnapshot>& cuts,
                                                    const std::filesystem::path& directory) {
  std::vector<FilePart> parts;
  for (const replay::TableSnapshot& cut : cuts) {
    const auto files = cut.writer->write(cut, directory / file_name(cut.options.shard));
    if (!files) return tl::unexpected(files.error());
    for (const auto& file : *files)
      parts.push_back({file.path.filename().string(), file.bytes, file.crc32c});
  }
  return parts;
}

void ShardHost::report(std::map<std::string, double>& counters,
                       std::map<std::string, double>& gauges) const {
  double held = 0, bytes = 0, steps = 0, memory = 0, disk = 0;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    // Before the counts: what is inserted meanwhile is within it.
    const std::uint64_t limit = servers_[i]->limit();
    const replay::TableStatistics s = tables_[i]->statistics();
    const std::string prefix = "shard" + std::to_string(first_ + i) + "/";
    const auto add = [&](const char* name, std::uint64_t value) {
      counters[prefix + name] = static_cast<double>(value);
      counters[name] += static_cast<double>(value);
    };
    add("inserted_steps", s.inserted_steps);
    add("removed_steps", s.removed_steps);
    add("lost_steps", s.lost_steps);
    add("prefilled_steps", s.prefilled_steps);
    add("inserted", s.inserted_items);
    add("sampled", s.sampled_items);
    add("duplicate_chunks", s.duplicate_chunks);
    add("priority_updates", s.priority_updates);
    add("stale_priorities", s.stale_priorities);
    add("invalid_priorities", s.invalid_priorities);
    add("not_finite_chunks", s.not_finite_chunks);
    add("malformed_chunks", s.malformed_chunks + servers_[i]->corrupt());
    counters[prefix + "insert_blocked_ms"] = static_cast<double>(s.insert_blocked_ms);
    gauges[prefix + "held_steps"] = static_cast<double>(s.held_steps);
    if (limit != ShardServer::kNoLimit) gauges[prefix + "step_limit"] = static_cast<double>(limit);
    gauges[prefix + "priority_mass"] = s.total_mass;
    held += static_cast<double>(s.held_items);
    bytes += static_cast<double>(s.bytes_held);
    steps += static_cast<double>(s.held_steps);
    memory += static_cast<double>(s.memory_bytes);
    disk += static_cast<double>(s.disk_bytes);
  }
  gauges["items_held"] = held;
  gauges["bytes_held"] = bytes;
  gauges["replay_memory"] = memory;
  gauges["replay_disk"] = disk;
  if (steps > 0) gauges["replay_memory_per_transition"] = memory / steps;
}

}  // namespace troupe::actors
