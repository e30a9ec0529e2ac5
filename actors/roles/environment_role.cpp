// The environment actor: steps while it has credit, sends each episode's chunks to one of the
// shards, follows the learner's parameters. A detached actor; one slice of work per message to
// itself.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "actors/config/checks.hpp"
#include "actors/messages/data_protocol.hpp"
#include "actors/roles/environment_worker.hpp"
#include "actors/roles/nap.hpp"
#include "actors/roles/parameter_feed.hpp"
#include "actors/roles/role_context.hpp"
#include "actors/roles/role_support.hpp"
#include "actors/roles/send_window.hpp"
#include "actors/roles/shard_router.hpp"
#include "actors/roles/worker_file.hpp"
#include "replay/codec.hpp"

namespace troupe::actors {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kMaxChunkAge{50};
constexpr milliseconds kResendAfter{3000};
constexpr milliseconds kSlice{2};  // of stepping between two looks at the mailbox
constexpr milliseconds kIdle{2};

class EnvironmentRole : public RoleBase {
 public:
  explicit EnvironmentRole(RoleContext context)
      : RoleBase(std::move(context)),
        window_(static_cast<std::size_t>(this->context().options.actors.credit), kResendAfter),
        router_(this->context().assignment.index) {}

  Result<void> start() override {
    const RunOptions& options = context().options;
    const Assignment& assignment = context().assignment;
    const auto& d4pg = options.learners.learner.d4pg;
    auto worker = EnvironmentWorker::make({.environment = options.environment.name,
                                           .time_limit = options.environment.time_limit,
                                           .environments = options.actors.environments,
                                           .worker = assignment.index,
                                           .incarnation = assignment.incarnation,
                                           .seed = static_cast<std::uint64_t>(options.seed),
                                           .sigma = d4pg.sigma,
                                           .flush_steps = limiter_figures(options).flush_steps,
                                           .gather_statistics = d4pg.normalise_observations});
    if (!worker) return tl::unexpected(worker.error());
    worker_ = std::move(*worker);
    if (!assignment.restore_directory.empty()) restore(assignment.restore_directory);
    ready({});
    return {};
  }

  void peers(const Peers& peers) override {
    if (lanes_.size() < peers.shard_endpoints.size()) lanes_.resize(peers.shard_endpoints.size());
    std::vector<bool> live;
    for (std::uint32_t shard = 0; shard < lanes_.size(); ++shard) {
      connect(shard, shard < peers.shard_endpoints.size() ? peers.shard_endpoints[shard] : "");
      live.push_back(lanes_[shard].channel != nullptr);
    }
    for (const std::uint32_t shard : peers.leaving_shards)
      if (shard < live.size()) live[shard] = false;
    // A run may be resumed with fewer shards than its unacknowledged chunks were made for.
    if (!lanes_.empty()) window_.fold_lanes(static_cast<std::uint32_t>(lanes_.size()));
    leave_shards(peers, live);
    router_.set_live(std::move(live));
    follow_parameters(peers.parameter_endpoint);
  }

  void pause(bool paused) override {
    paused_ = paused;
    if (paused) flush(milliseconds{0});
  }

  void drain() override {
    draining_ = true;
    flush(milliseconds{0});
    if (auto delta = worker_->take_statistics(); !delta.empty()) send_statistics(std::move(delta));
  }

  // All that it stepped is in a table.
  bool drained() override {
    if (window_.size() > 0) return false;
    publish_report();
    return true;
  }

  // One slice: answers in, steps, chunks out.
  Result<void> work() override {
    receive_answers(milliseconds{0});
    receive_parameters();
    const char* blocked = blocked_on();
    blocked_.set(blocked);
    if (*blocked != '\0') {
      flush(kMaxChunkAge);
      receive_answers(kIdle);
    } else if (auto stepped = step_slice(); !stepped) {
      return stepped;
    }
    report();
    return {};
  }

  void checkpoint(const CheckpointRequest& request) override {
    queue_chunks(Clock::now(), kMaxChunkAge);
    write_parts_later(request, {worker_file(*worker_, window_, router_, context().node)}, "{}");
  }

 private:
  // The way to one shard. What a dead one did not acknowledge waits for its next life, which may
  // have it from a checkpoint; the episodes go on elsewhere.
  struct Lane {
    std::string endpoint;
    std::unique_ptr<ChannelClient> channel;  // null: the shard is not there
  };

  void connect(std::uint32_t shard, const std::string& endpoint) {
    Lane& lane = lanes_[shard];
    if (lane.endpoint == endpoint) return;
    lane.endpoint = endpoint;
    lane.channel.reset();
    if (endpoint.empty()) return;
    if (auto channel = open_channel_client(endpoint, context().peer_name()))
      lane.channel = std::move(*channel);
    else
      warn("data_channel", channel.error().message);
    window_.reconnected(shard);
  }

  // A node that was not there at the checkpoint starts fresh, as does one whose file is of no use.
  void restore(const std::filesystem::path& directory) {
    const auto loaded = load_worker(*worker_, window_, router_, directory, context().node);
    if (!loaded && loaded.error().code != ErrorCode::kNotFound)
      warn("restore", "starts with fresh episodes: " + loaded.error().message);
    before_ = worker_->counters();  // counted from here on
  }

  // Chunks that such shards will not acknowledge go to the first of those that stay, there or not.
  void leave_shards(const Peers& peers, const std::vector<bool>& live) {
    const auto is_in = [](const std::vector<std::uint32_t>& list, std::uint32_t shard) {
      return std::find(list.begin(), list.end(), shard) != list.end();
    };
    std::optional<std::uint32_t> stays;
    for (std::uint32_t shard = 0; shard < live.size(); ++shard)
      if (!is_in(peers.leaving_shards, shard) && !is_in(peers.gone_shards, shard) &&
          (!stays || (live[shard] && !live[*stays])))
        stays = shard;
    if (!stays) return;
    for (const std::uint32_t shard : peers.leaving_shards) window_.move_lane(shard, *stays, false);
    for (const std::uint32_t shard : peers.gone_shards) window_.move_lane(shard, *stays, true);
  }

  const char* blocked_on() const {
    if (draining_) return "drain";
    if (paused_) return "pause";
    if (!worker_->has_parameters()) return "parameters";
    if (!router_.any_live()) return "shard";
    if (window_.full()) return "replay_credit";
    return "";
  }

  Result<void> step_slice() {
    const auto end = Clock::now() + kSlice;
    do {
      const auto now = Clock::now();
      board().enter("a step of the environment, actor step",
                    static_cast<std::uint64_t>(worker_->counters().steps));
      auto stepped = worker_->step(now);
      board().leave();
      if (!stepped) return stepped;
      queue_chunks(now, kMaxChunkAge);
      send(now);
      drain_records();
    } while (!window_.full() && Clock::now() < end);
    return {};
  }

  void queue_chunks(Clock::time_point now, milliseconds max_age) {
    while (auto chunk = worker_->take_chunk(now, max_age)) {
      auto payload = std::make_shared<const Bytes>(replay::encode(*chunk, worker_->signature()));
      const replay::ChunkHeader& header = chunk->header;
      const std::uint32_t shard =
          router_.route(header.environment, header.first_step == 0, window_.by_lane(lanes_.size()));
      window_.add({header.incarnation, header.sequence}, header.steps, std::move(payload),
                  header.environment, shard);
    }
  }

  void flush(milliseconds max_age) {
    const auto now = Clock::now();
    queue_chunks(now, max_age);
    send(now);
  }

  void send(Clock::time_point now) {
    // A lane that takes no more now does not hold up the others.
    std::vector<bool> full(lanes_.size());
    const auto open = [&](std::uint32_t lane) { return router_.is_live(lane) && !full[lane]; };
    while (const SendWindow::Entry* entry = window_.next(now, open)) {
      const SendWindow::Key key = entry->key;
      if (lanes_[entry->lane].channel->send(
              {static_cast<std::uint8_t>(DataKind::kSegment), entry->payload}))
        window_.sent(key, now);
      else
        full[entry->lane] = true;
    }
  }

  // Waits for the first answer of any shard, if `timeout` says so.
  void receive_answers(milliseconds timeout) {
    bool any = false;
    for (const Lane& lane : lanes_)
      while (lane.channel) {
        const auto message = lane.channel->receive(milliseconds{0});
        if (!message) break;
        take_answer(*message);
        any = true;
      }
    if (any) nap_.disturb();
    if (!any && timeout > milliseconds{0}) wait_for_answer(timeout);
    send(Clock::now());
  }

  void wait_for_answer(milliseconds timeout) {
    const auto live = std::count_if(lanes_.begin(), lanes_.end(),
                                    [](const Lane& lane) { return lane.channel != nullptr; });
    if (live != 1) return nap_.take();
    for (const Lane& lane : lanes_)
      if (lane.channel)
        if (const auto message = lane.channel->receive(timeout)) take_answer(*message);
  }

  void take_answer(const ChannelMessage& message) {
    const auto words = words_of<3>(message);
    if (!words || (*words)[0] != context().assignment.index) return;
    const auto steps = window_.acknowledge({static_cast<std::uint32_t>((*words)[1]), (*words)[2]});
    if (message.kind == static_cast<std::uint8_t>(DataKind::kAck)) {
      acknowledged_ += steps.value_or(0);
    } else if (message.kind == static_cast<std::uint8_t>(DataKind::kRefused)) {
      refused_ += steps.value_or(0);
      const auto& payload = *message.payload;
      warn("refused",
           "the shard refused a chunk: " + std::string(payload.begin() + 24, payload.end()));
    }
  }

  void follow_parameters(const std::string& endpoint) {
    if (endpoint == parameter_endpoint_) return;
    parameter_endpoint_ = endpoint;
    parameters_.reset();
    if (endpoint.empty()) return;
    if (auto subscriber = ParameterSubscriber::open(endpoint, context().peer_name()))
      parameters_ = std::move(*subscriber);
    else
      warn("parameter_channel", subscriber.error().message);
  }

  void receive_parameters() {
    if (!parameters_ || !parameters_->poll(milliseconds{0})) return;
    if (auto set = worker_->set_parameters(parameters_->newest()); !set)
      warn("parameters", set.error().message);
  }

  void drain_records() {
    while (auto fault = worker_->take_fault()) warn("invalid_episode", *fault);
    while (const auto done = worker_->take_episode())
      episode(static_cast<std::uint64_t>(done->environment), done->episode_return,
              static_cast<std::uint64_t>(done->length), done->version);
  }

  void report() {
    if (!report_due()) return;
    if (auto delta = worker_->take_statistics(); !delta.empty()) send_statistics(std::move(delta));
    publish_report();
  }

  void publish_report() {
    const envs::VectorEnvCounters& counters = worker_->counters();
    RoleBoard::Snapshot snapshot;
    auto& c = snapshot.counters;
    // Those that a shard has: what dies here with unacknowledged chunks never was the run's.
    c["actor_steps"] = static_cast<double>(acknowledged_);
    c["episodes"] = static_cast<double>(counters.episodes - before_.episodes);
    c["invalid_episodes"] =
        static_cast<double>(counters.invalid_episodes - before_.invalid_episodes);
    c["nan_transitions"] = static_cast<double>(counters.nan_transitions - before_.nan_transitions);
    c["refused_steps"] = static_cast<double>(refused_);
    c["resent_chunks"] = static_cast<double>(window_.resent());
    blocked_.add_to(c);
    snapshot.gauges["policy_version"] = static_cast<double>(worker_->version());
    snapshot.gauges["unacknowledged_chunks"] = static_cast<double>(window_.size());
    snapshot.waiting_on = blocked_.reason();
    board().publish(std::move(snapshot));
  }

  std::unique_ptr<EnvironmentWorker> worker_;
  envs::VectorEnvCounters before_{};  // of the life that was restored
  SendWindow window_;
  ShardRouter router_;
  std::vector<Lane> lanes_;  // [shard]
  Nap nap_;
  std::string parameter_endpoint_;
  std::unique_ptr<ParameterSubscriber> parameters_;
  BlockedTime blocked_;
  bool paused_ = false, draining_ = false;
  std::uint64_t acknowledged_ = 0, refused_ = 0;
};

}  // namespace

RoleActor spawn_environment_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<EnvironmentRole>(system, std::move(context));
}

}  // namespace troupe::actors
