// An environment actor's part of a checkpoint: its worker's state, its unacknowledged chunks and
// which shards its episodes go to, in one file.
#pragma once

#include <filesystem>

#include "actors/roles/environment_worker.hpp"
#include "actors/roles/send_window.hpp"
#include "actors/roles/shard_router.hpp"
#include "envs/spec/files.hpp"

namespace troupe::actors {

// "actor-0.state"
std::string worker_file_name(const std::string& node);

FileContent worker_file(const EnvironmentWorker& worker, const SendWindow& window,
                        const ShardRouter& router, const std::string& node);
// All three or, on any error, none of them: the worker is as new then, window and router are as
// they were. kNotFound when the node has no file there.
Result<void> load_worker(EnvironmentWorker& worker, SendWindow& window, ShardRouter& router,
                         const std::filesystem::path& directory, const std::string& node);

}  // namespace troupe::actors
