// The environment actor: steps while it has credit, sends chunks to its shard, follows the
// learner's parameters. A detached actor; one slice of work per message to itself.
#include <filesystem>

#include "actors/config/checks.hpp"
#include "actors/messages/data_protocol.hpp"
#include "actors/roles/environment_worker.hpp"
#include "actors/roles/parameter_feed.hpp"
#include "actors/roles/role_context.hpp"
#include "actors/roles/role_support.hpp"
#include "actors/roles/send_window.hpp"
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
        window_(static_cast<std::size_t>(this->context().options.actors.credit), kResendAfter) {}

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
    const std::size_t shard =
        context().assignment.index % std::max<std::size_t>(1, peers.shard_endpoints.size());
    const std::string data = peers.shard_endpoints.empty() ? "" : peers.shard_endpoints[shard];
    if (data != data_endpoint_) {
      data_endpoint_ = data;
      data_.reset();
      if (!data.empty()) {
        if (auto channel = open_channel_client(data, context().peer_name()))
          data_ = std::move(*channel);
        else
          warn("data_channel", channel.error().message);
        window_.reconnected();
      }
    }
    follow_parameters(peers.parameter_endpoint);
  }

  void pause(bool paused) override {
    paused_ = paused;
    if (paused) flush(milliseconds{0});
  }

  // One slice: answers in, steps, chunks out.
  Result<void> work() override {
    receive_answers(milliseconds{0});
    receive_parameters();
    const char* blocked = blocked_on();
    blocked_.set(blocked);
    if (*blocked != '\0') {
      flush(kMaxChunkAge);
      if (data_)
        receive_answers(kIdle);
      else
        std::this_thread::sleep_for(kIdle);
    } else if (auto stepped = step_slice(); !stepped) {
      return stepped;
    }
    report();
    return {};
  }

  void checkpoint(const CheckpointRequest& request) override {
    queue_chunks(Clock::now(), kMaxChunkAge);
    write_parts_later(request, {worker_file(*worker_, window_, context().node)}, "{}");
  }

 private:
  // A node that was not there at the checkpoint starts fresh, as does one whose file is of no use.
  void restore(const std::filesystem::path& directory) {
    const auto loaded = load_worker(*worker_, window_, directory, context().node);
    if (!loaded && loaded.error().code != ErrorCode::kNotFound)
      warn("restore", "starts with fresh episodes: " + loaded.error().message);
    before_ = worker_->counters();  // counted from here on
  }

  const char* blocked_on() const {
    if (paused_) return "pause";
    if (!worker_->has_parameters()) return "parameters";
    if (!data_) return "shard";
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
      window_.add({chunk->header.incarnation, chunk->header.sequence}, chunk->header.steps,
                  std::move(payload));
    }
  }

  void flush(milliseconds max_age) {
    const auto now = Clock::now();
    queue_chunks(now, max_age);
    send(now);
  }

  void send(Clock::time_point now) {
    if (!data_) return;
    while (const SendWindow::Entry* entry = window_.next(now)) {
      const SendWindow::Key key = entry->key;
      if (!data_->send({static_cast<std::uint8_t>(DataKind::kSegment), entry->payload})) return;
      window_.sent(key, now);
    }
  }

  void receive_answers(milliseconds timeout) {
    if (!data_) return;
    while (auto message = data_->receive(timeout)) {
      timeout = milliseconds{0};
      const auto words = words_of<3>(*message);
      if (!words || (*words)[0] != context().assignment.index) continue;
      const auto steps =
          window_.acknowledge({static_cast<std::uint32_t>((*words)[1]), (*words)[2]});
      if (message->kind == static_cast<std::uint8_t>(DataKind::kAck)) {
        acknowledged_ += steps.value_or(0);
      } else if (message->kind == static_cast<std::uint8_t>(DataKind::kRefused)) {
        refused_ += steps.value_or(0);
        const auto& payload = *message->payload;
        warn("refused",
             "the shard refused a chunk: " + std::string(payload.begin() + 24, payload.end()));
      }
    }
    send(Clock::now());
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
  std::unique_ptr<ChannelClient> data_;
  std::string data_endpoint_, parameter_endpoint_;
  std::unique_ptr<ParameterSubscriber> parameters_;
  BlockedTime blocked_;
  bool paused_ = false;
  std::uint64_t acknowledged_ = 0, refused_ = 0;
};

}  // namespace

RoleActor spawn_environment_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<EnvironmentRole>(system, std::move(context));
}

}  // namespace troupe::actors
