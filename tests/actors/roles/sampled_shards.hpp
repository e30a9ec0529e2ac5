// Shards that serve in threads of their own, and sources that draw from them.
#pragma once

#include <thread>

#include "actors/roles/batch_source.hpp"
#include "actors/roles/shard_server.hpp"
#include "tests/actors/roles/data_plane.hpp"

namespace troupe::actors::testing {

inline SourceOptions source_options(std::int64_t items, replay::LimiterOptions limiter = {1, 0, 0},
                                    bool shared = false) {
  return {
      .items = items, .ahead = 2, .limiter = GlobalLimiter(limiter, shared), .random = Random(1)};
}

// Items past the limiter.
inline void fill(replay::Table& table, std::uint32_t items, float value) {
  ASSERT_EQ(table.prefill(std::make_shared<const replay::Chunk>(episode(0, items, value))).kind,
            replay::InsertOutcome::Kind::kAccepted);
}

// A shard that serves in a thread of its own.
class Shard {
 public:
  explicit Shard(std::shared_ptr<replay::Table> table)
      : server(ShardServer::open(std::move(table), unique_endpoint(), unique_endpoint()).value()),
        thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) server->serve(milliseconds{1});
        }) {}
  replay::Table& table() { return server->table(); }

  std::unique_ptr<ShardServer> server;

 private:
  std::jthread thread_;
};

inline std::unique_ptr<BatchSource> remote_source(const std::vector<std::unique_ptr<Shard>>& shards,
                                                  const SourceOptions& options,
                                                  const std::string& name = "learner-0.1") {
  auto source = make_remote_source(shards.front()->table().batch_columns(), name, options);
  std::vector<std::string> endpoints;
  for (const auto& shard : shards) endpoints.push_back(shard->server->sample_endpoint());
  source->set_endpoints(endpoints);
  return source;
}

// Waits for what a thread does.
template <class Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition())
    if (std::chrono::steady_clock::now() > end)
      return false;
    else
      std::this_thread::sleep_for(milliseconds{1});
  return true;
}

}  // namespace troupe::actors::testing
