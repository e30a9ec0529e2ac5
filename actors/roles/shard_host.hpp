// The shards of one node: tables, their servers, and their part of checkpoints. Belongs to the
// role's thread, except that each server is driven by one thread of its own while serving.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <thread>
#include <vector>

#include "actors/roles/role_context.hpp"
#include "actors/roles/shard_server.hpp"

namespace troupe::actors {

class ShardHost {
 public:
  // Opens shards first…first+count-1; restores each from the assignment's checkpoint, or fills it
  // from replay.prefill.
  // `remote_samples`: also serve batches over a channel. Errors name the shard.
  static Result<std::unique_ptr<ShardHost>> open(const RoleContext& context, std::uint32_t first,
                                                 std::uint32_t count, bool remote_samples);
  ~ShardHost();

  const std::vector<std::shared_ptr<replay::Table>>& tables() const { return tables_; }
  // For RoleReady: endpoints and the restored counts.
  RoleReady ready_message() const;
  // Tells the coordinator what is worth knowing of the start (differences between a restored
  // table's options and this run's, files that were not there, what replay.prefill brought), then
  // starts the servers' threads.
  void serve(const RoleContext& context);
  // Stops them; waiters at the tables return.
  void stop();

  // Each shard stops taking chunks once it has inserted so many steps.
  void limit(const StepLimits& limits);

  // The shortest of its servers' quiet times (ShardServer::quiet_for).
  std::chrono::milliseconds quiet_for() const;

  // Of a shard's table in a checkpoint: "replay-0.table".
  static std::string file_name(std::uint32_t shard);
  // A cut of all tables now; written by write_cuts from any thread.
  std::vector<replay::TableSnapshot> cut() const;
  // What a checkpoint's state says of the cuts: [{"shard", "inserted", "held", "removed"}], in
  // steps.
  static nlohmann::json ledgers(const std::vector<replay::TableSnapshot>& cuts);
  static Result<std::vector<FilePart>> write_cuts(const std::vector<replay::TableSnapshot>& cuts,
                                                  const std::filesystem::path& directory);

  // Adds each shard's counters and gauges under "shard<i>/" and their sums under plain names.
  void report(std::map<std::string, double>& counters, std::map<std::string, double>& gauges) const;

 private:
  explicit ShardHost(std::uint32_t first) : first_(first) {}
  Result<void> load(const RoleContext& context, const EnvSpec& spec, std::uint32_t shard,
                    replay::Table& table);

  std::uint32_t first_;
  std::vector<std::shared_ptr<replay::Table>> tables_;
  std::vector<std::unique_ptr<ShardServer>> servers_;
  std::vector<std::string> notes_, prefilled_;
  std::vector<std::jthread> threads_;
};

}  // namespace troupe::actors
