// The evaluator actor: keeps the newest parameters and plays episodes with them when asked. The
// episodes run in a thread of their own, so that the actor always answers.
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/roles/evaluation.hpp"
#include "actors/roles/parameter_feed.hpp"
#include "actors/roles/role_support.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

class EvaluatorRole final : public RoleBase {
 public:
  using RoleBase::RoleBase;

  Result<void> start() override {
    ready({});
    return {};
  }

  void peers(const Peers& peers) override {
    if (peers.parameter_endpoint == endpoint_) return;
    endpoint_ = peers.parameter_endpoint;
    const models::ParameterSetPtr newest = parameters_ ? parameters_->newest() : nullptr;
    parameters_.reset();
    if (endpoint_.empty()) return;
    auto subscriber = ParameterSubscriber::open(endpoint_, context().peer_name());
    if (!subscriber) return warn("parameter_channel", subscriber.error().message);
    parameters_ = std::move(*subscriber);
    parameters_->keep(newest);
  }

  void evaluate(const EvaluateRequest& request) override { request_ = request; }

  Result<void> work() override {
    if (parameters_)
      parameters_->poll(milliseconds{20});
    else
      std::this_thread::sleep_for(milliseconds{20});
    if (request_ && !running_ && parameters_ && parameters_->newest() && fresh_enough()) begin();
    if (report_due()) {
      RoleBoard::Snapshot snapshot;
      snapshot.counters["evaluations"] = static_cast<double>(evaluations_);
      if (request_) snapshot.waiting_on = "parameters";
      board().publish(std::move(snapshot));
    }
    return {};
  }

  void checkpoint(const CheckpointRequest& request) override {
    parts_written(request.checkpoint, std::vector<FilePart>{}, "{}");
  }

  void stop() override { thread_ = {}; }

 private:
  // The learner publishes every so many updates: a set that recent counts as the version asked for.
  bool fresh_enough() const {
    const auto slack = static_cast<std::uint64_t>(context().options.learners.learner.publish_every);
    return parameters_->newest()->version + slack >= request_->version;
  }

  void begin() {
    running_ = true;
    ++evaluations_;
    const RunOptions& options = context().options;
    const EvaluationPlan plan{.environment = options.environment.name,
                              .time_limit = options.environment.time_limit,
                              .episodes = options.evaluation.episodes,
                              .seed = static_cast<std::uint64_t>(options.seed)};
    thread_ = std::jthread([this, plan, request = *request_,
                            set = parameters_->newest()](const std::stop_token& stop) {
      const auto result = actors::evaluate(plan, *set, [&] { return !stop.stop_requested(); });
      EvaluationDone done{.node = {},
                          .evaluation = request.evaluation,
                          .actor_steps = request.actor_steps,
                          .version = set->version,
                          .json = {},
                          .error = {}};
      if (result)
        done.json =
            nlohmann::json{{"returns", result->returns}, {"lengths", result->lengths}}.dump();
      else
        done.error = result.error().message;
      evaluated(std::move(done));
      running_ = false;
    });
    request_.reset();
  }

  std::string endpoint_;
  std::unique_ptr<ParameterSubscriber> parameters_;
  std::optional<EvaluateRequest> request_;
  std::atomic<bool> running_{false};
  std::uint64_t evaluations_ = 0;
  std::jthread thread_;
};

}  // namespace

RoleActor spawn_evaluator_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<EvaluatorRole>(system, std::move(context));
}

}  // namespace troupe::actors
