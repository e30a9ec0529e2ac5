// The replay shard as a role of its own process. The shard's server has a thread; this actor
// answers the coordinator.
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/roles/role_support.hpp"
#include "actors/roles/shard_host.hpp"

namespace troupe::actors {
namespace {

class ShardRole final : public RoleBase {
 public:
  using RoleBase::RoleBase;

  Result<void> start() override {
    auto host = ShardHost::open(context(), context().assignment.index, 1, true);
    if (!host) return tl::unexpected(host.error());
    host_ = std::move(*host);
    for (const std::string& note : host_->notes()) warn("restore", note);
    host_->serve();
    ready(host_->ready_message());
    return {};
  }

  Result<void> work() override {
    if (report_due()) {
      RoleBoard::Snapshot snapshot;
      host_->report(snapshot.counters, snapshot.gauges);
      const replay::TableStatistics statistics = host_->tables().front()->statistics();
      snapshot.counters["insert_blocked_ms"] = static_cast<double>(statistics.insert_blocked_ms);
      snapshot.counters["sample_blocked_ms"] = static_cast<double>(statistics.sample_blocked_ms);
      snapshot.waiting_on = host_->tables().front()->insert_block_reason();
      board().publish(std::move(snapshot));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return {};
  }

  void checkpoint(const CheckpointRequest& request) override {
    // In a thread: inserts and samples go on while the cut is written.
    writer_ = std::jthread([this, request, cuts = host_->cut()] {
      const nlohmann::json state = {{"ledgers", ShardHost::ledgers(cuts)}};
      auto parts = context().options.checkpoint.replay
                       ? ShardHost::write_cuts(cuts, request.directory)
                       : Result<std::vector<FilePart>>(std::vector<FilePart>{});
      parts_written(request.checkpoint, std::move(parts), state.dump());
    });
  }

  void stop() override {
    if (writer_.joinable()) writer_.join();
    if (host_) host_->stop();
  }

 private:
  std::unique_ptr<ShardHost> host_;
  std::jthread writer_;
};

}  // namespace

RoleActor spawn_shard_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<ShardRole>(system, std::move(context));
}

}  // namespace troupe::actors
