// The replay shard as a role of its own process. The shard's server has a thread; this actor
// answers the coordinator.
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/roles/role_support.hpp"
#include "actors/roles/shard_host.hpp"

namespace troupe::actors {
namespace {

constexpr std::chrono::milliseconds kQuiet{500};

class ShardRole final : public RoleBase {
 public:
  using RoleBase::RoleBase;

  Result<void> start() override {
    auto host = ShardHost::open(context(), context().assignment.index, 1, true);
    if (!host) return tl::unexpected(host.error());
    host_ = std::move(*host);
    host_->serve(context());
    ready(host_->ready_message());
    return {};
  }

  Result<void> work() override {
    if (report_due()) {
      RoleBoard::Snapshot snapshot;
      host_->report(snapshot.counters, snapshot.gauges);
      const replay::TableStatistics statistics = host_->tables().front()->statistics();
      snapshot.counters["insert_blocked_ms"] = static_cast<double>(statistics.insert_blocked_ms);
      snapshot.waiting_on = host_->tables().front()->insert_block_reason();
      board().publish(std::move(snapshot));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return {};
  }

  void checkpoint(const CheckpointRequest& request) override {
    auto cuts = host_->cut();
    const nlohmann::json state = {{"ledgers", ShardHost::ledgers(cuts)}};
    if (!context().options.checkpoint.replay) cuts.clear();
    write_parts_later(request, {}, state.dump(),
                      [cuts = std::move(cuts), directory = request.directory] {
                        return ShardHost::write_cuts(cuts, directory);
                      });
  }

  // Environment actors have heard by then that no chunk is wanted any more, and have the answers to
  // those that came.
  bool drained() override { return host_->quiet_for() > kQuiet; }

  void limit(const StepLimits& limits) override { host_->limit(limits); }

  void stop() override {
    if (host_) host_->stop();
  }

 private:
  std::unique_ptr<ShardHost> host_;
};

}  // namespace

RoleActor spawn_shard_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<ShardRole>(system, std::move(context));
}

}  // namespace troupe::actors
