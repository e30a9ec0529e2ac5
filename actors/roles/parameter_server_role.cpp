// The parameter server as a role of its own process: applies the updates that learners send,
// answers with the values after them, and writes snapshots, which its next life begins with. One
// thread answers; files are written by others.
#include <nlohmann/json.hpp>

#include "actors/config/checks.hpp"
#include "actors/messages/data_protocol.hpp"
#include "actors/roles/role_support.hpp"
#include "actors/roles/update_link.hpp"
#include "actors/roles/update_mark.hpp"
#include "envs/registry.hpp"
#include "learners/loader.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kWait{5};
constexpr int kMostAtOnce = 64;  // requests answered between two looks at other messages

class ParameterServerRole final : public RoleBase {
 public:
  using RoleBase::RoleBase;

  Result<void> start() override {
    return make_shard()
        .and_then([this] { return restore(); })
        .and_then([this] { return open_channel(); })
        .map([this] {
          RoleReady message;
          message.update_endpoint = channel_->endpoint();
          message.state_json = nlohmann::json{{"version", life().version}}.dump();
          ready(std::move(message));
        });
  }

  Result<void> work() override {
    milliseconds timeout = kWait;
    for (int i = 0; i < kMostAtOnce; ++i) {
      const auto received = channel_->receive(timeout);
      if (!received) break;
      timeout = milliseconds{0};
      if (auto answered = answer(*received); !answered) return answered;
    }
    if (Clock::now() - snapshot_at_ >= context().options.learners.snapshot_every)
      if (auto written = begin_snapshot(); !written) return written;
    report();
    return {};
  }

  void checkpoint(const CheckpointRequest& request) override {
    auto bytes = shard_->snapshot();
    const nlohmann::json state = {
        {"server", {{"index", index()}, {"version", life().version}, {"applied", life().applied}}}};
    if (!bytes)
      return parts_written(request.checkpoint, tl::unexpected(bytes.error()), state.dump());
    std::vector<FileContent> files;
    files.push_back({snapshot_name(index()), std::move(*bytes)});
    write_parts_later(request, std::move(files), state.dump());
  }

 private:
  std::uint32_t index() const { return context().assignment.index; }
  ServerLife life() const {
    const learners::ParameterShardFigures figures = shard_->figures();
    return {figures.version, figures.applied};
  }
  std::filesystem::path own_snapshot() const {
    return server_snapshots(context().assignment.run_directory) / snapshot_name(index());
  }

  Result<void> make_shard() {
    const RunOptions& options = context().options;
    auto env =
        envs::make_env(options.environment.name, {.time_limit = options.environment.time_limit});
    if (!env) return tl::unexpected(env.error());
    const auto factory = learners::load_parameter_shards();
    if (!factory) return tl::unexpected(factory.error());
    const auto& learning = options.learners;
    auto shard = (*factory)(options.job, learning.learner,
                            {.spec = (*env)->spec(),
                             .seed = static_cast<std::uint64_t>(options.seed),
                             .epoch = context().assignment.epoch,
                             .deterministic = false,
                             .pictures = {}},
                            {.server = static_cast<int>(index()),
                             .servers = static_cast<int>(parameter_servers(options)),
                             .workers = static_cast<int>(sync_groups(options)),
                             .staleness = static_cast<std::uint64_t>(learning.staleness),
                             .incarnation = context().assignment.incarnation});
    if (!shard) return tl::unexpected(shard.error());
    shard_ = std::move(*shard);
    limits_ = update_limits(options, (*env)->spec());
    return {};
  }

  // From its own snapshot, which is of this session; else from the checkpoint that the run resumes
  // from. A checkpoint of this session may hold more than the snapshot.
  Result<void> restore() {
    const auto own = read_file(own_snapshot());
    if (own) {
      if (auto restored = shard_->restore(*own); !restored) return restored;
    } else if (own.error().code != ErrorCode::kNotFound) {
      return tl::unexpected(own.error());
    }
    const std::string& from = context().assignment.restore_directory;
    if (from.empty()) return {};
    const auto saved = read_file(std::filesystem::path(from) / snapshot_name(index()));
    if (!saved && own) return {};
    if (!saved)
      return fail(saved.error().code, saved.error().message +
                                          "; a run keeps its learners.sync and its number of "
                                          "learners.parameter_servers");
    if (!own) return shard_->restore(*saved);
    const std::uint64_t held = life().version;
    if (auto again = make_shard(); !again) return again;
    if (auto restored = shard_->restore(*saved); !restored) return restored;
    if (life().version >= held) return {};
    if (auto again = make_shard(); !again) return again;
    return shard_->restore(*own);
  }

  Result<void> open_channel() {
    auto mark = UpdateMark::create(UpdateMark::path_of(context().assignment.socket_directory,
                                                       index(), context().assignment.incarnation),
                                   life());
    if (!mark) return tl::unexpected(mark.error());
    mark_ = std::move(*mark);
    auto channel = open_channel_server(context().channel_endpoint("updates"), limits_);
    if (!channel) return tl::unexpected(channel.error());
    channel_ = std::move(*channel);
    return {};
  }

  // What was applied is counted before anybody hears of it, and first values are on the disk.
  Result<void> answer(const ChannelServer::Received& received) {
    const auto request = read_update_message(received.message);
    if (!request) {
      ++malformed_;
      return {};
    }
    const learners::ParameterShardFigures before = shard_->figures();
    const std::vector<std::uint8_t> bytes = shard_->answer(request->bytes);
    const learners::ParameterShardFigures after = shard_->figures();
    if (after.applied != before.applied) mark_->set(life());
    if (after.ready && !before.ready) {
      auto snapshot = shard_->snapshot();
      if (!snapshot) return tl::unexpected(snapshot.error());
      if (auto written = write_file(own_snapshot(), *snapshot); !written) return written;
      snapshot_at_ = Clock::now();
    }
    // A worker that is gone asks again when it comes back.
    (void)channel_->send(received.peer,
                         update_message(DataKind::kUpdateAnswer, request->number, bytes));
    return {};
  }

  // One at a time; a disk that is slow or full only makes them fewer.
  Result<void> begin_snapshot() {
    if (writing_ || !shard_->figures().ready || life() == written_) return {};
    auto bytes = shard_->snapshot();
    if (!bytes) return tl::unexpected(bytes.error());
    snapshot_at_ = Clock::now();
    written_ = life();
    writing_ = true;
    snapshot_writer_ = std::jthread([this, bytes = std::move(*bytes), path = own_snapshot()] {
      if (auto written = write_file(path, bytes); !written)
        warn("snapshot_failed", "no snapshot was written: " + written.error().message);
      writing_ = false;
    });
    return {};
  }

  void report() {
    if (!report_due()) return;
    const learners::ParameterShardFigures figures = shard_->figures();
    RoleBoard::Snapshot snapshot;
    const std::string prefix = "server" + std::to_string(index()) + "/";
    snapshot.counters[prefix + "applied"] = static_cast<double>(figures.applied);
    snapshot.counters[prefix + "refused"] = static_cast<double>(figures.refused);
    snapshot.counters[prefix + "repeated"] = static_cast<double>(figures.repeated);
    snapshot.counters["malformed_updates"] = static_cast<double>(malformed_);
    snapshot.gauges[prefix + "version"] = static_cast<double>(figures.version);
    snapshot.gauges[prefix + "staleness_max"] = static_cast<double>(figures.staleness_max);
    if (figures.applied > 0)
      snapshot.gauges[prefix + "staleness_mean"] =
          static_cast<double>(figures.staleness_sum) / static_cast<double>(figures.applied);
    snapshot.gauges[prefix + "bytes"] = static_cast<double>(figures.bytes);
    snapshot.gauges["imbalance"] = figures.imbalance;
    if (!figures.ready) snapshot.waiting_on = "first values";
    board().publish(std::move(snapshot));
  }

  std::unique_ptr<learners::ParameterShard> shard_;
  ChannelLimits limits_;
  std::unique_ptr<UpdateMark> mark_;
  std::unique_ptr<ChannelServer> channel_;
  std::uint64_t malformed_ = 0;
  Clock::time_point snapshot_at_ = Clock::now();
  ServerLife written_;
  std::atomic<bool> writing_{false};
  std::jthread snapshot_writer_;  // last: joined before what it uses goes
};

}  // namespace

RoleActor spawn_parameter_server_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<ParameterServerRole>(system, std::move(context));
}

}  // namespace troupe::actors
