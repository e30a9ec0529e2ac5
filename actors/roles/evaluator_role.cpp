// The evaluator actor: keeps the newest parameters and, when asked, plays episodes with them or
// judges a classifier on its evaluation set. Both run in a thread of their own, so that the actor
// always answers.
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "actors/config/checks.hpp"
#include "actors/roles/classification_report.hpp"
#include "actors/roles/evaluation.hpp"
#include "actors/roles/generation_evaluation.hpp"
#include "actors/roles/parameter_feed.hpp"
#include "actors/roles/picture_evaluation.hpp"
#include "actors/roles/role_support.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

class EvaluatorRole final : public RoleBase {
 public:
  using RoleBase::RoleBase;

  Result<void> start() override {
    if (context().options.job == "sngan") {
      auto generation = GenerationEvaluation::open(context().options, 1);
      if (!generation) return tl::unexpected(generation.error());
      generation_ = std::move(*generation);
    }
    if (context().options.job == "resnet") {
      auto pictures = PictureEvaluation::open(context().options, 1);
      if (!pictures) return tl::unexpected(pictures.error());
      pictures_ = std::move(*pictures);
    }
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
      {
        const std::lock_guard lock(found_mutex_);
        snapshot.gauges = found_;
      }
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
    thread_ = std::jthread(
        [this, request = *request_, set = parameters_->newest()](const std::stop_token& stop) {
          const auto keep_going = [&] { return !stop.stop_requested(); };
          const auto result = pictures_     ? judge(*set, keep_going)
                              : generation_ ? show(*set, keep_going)
                                            : play(*set, keep_going);
          EvaluationDone done{.node = {},
                              .evaluation = request.evaluation,
                              .actor_steps = request.actor_steps,
                              .version = set->version,
                              .json = {},
                              .error = {}};
          if (result)
            done.json = *result;
          else
            done.error = result.error().message;
          evaluated(std::move(done));
          running_ = false;
        });
    request_.reset();
  }

  using KeepGoing = std::function<bool()>;

  Result<std::string> play(const models::ParameterSet& set, const KeepGoing& keep_going) const {
    const RunOptions& options = context().options;
    const EvaluationPlan plan{.environment = options.environment.name,
                              .time_limit = options.environment.time_limit,
                              .episodes = options.evaluation.episodes,
                              .seed = static_cast<std::uint64_t>(options.seed)};
    return actors::evaluate(plan, set, keep_going).map([](const EvaluationResult& result) {
      return nlohmann::json{{"returns", result.returns}, {"lengths", result.lengths}}.dump();
    });
  }

  Result<std::string> judge(const models::ParameterSet& set, const KeepGoing& keep_going) {
    return pictures_->run(set, keep_going).map([&](const nlohmann::ordered_json& report) {
      {
        const std::lock_guard lock(found_mutex_);
        for (const char* name : {"top1", "top5"}) found_[name] = report.at(name).get<double>();
        found_["cross_entropy"] = report.at("loss").get<double>();
      }
      nlohmann::ordered_json done{{"report", report}, {"text", classification_line(report)}};
      done["returns"].push_back(report.at("top1"));
      done["lengths"].push_back(report.at("pictures"));
      return done.dump();
    });
  }

  Result<std::string> show(const models::ParameterSet& set, const KeepGoing& keep_going) {
    const auto folder = std::filesystem::path(context().assignment.run_directory) / "samples";
    return generation_->run(set, folder, keep_going).map([&](const nlohmann::ordered_json& report) {
      nlohmann::ordered_json done{{"report", report}, {"text", generation_line(report)}};
      done["returns"] = done["lengths"] = nlohmann::json::array();
      if (report.contains("frechet_distance")) {
        done["returns"].push_back(report.at("frechet_distance"));
        done["lengths"].push_back(report.at("pictures"));
      }
      if (report.contains("collapsed")) tell_collapse(report, set.version);
      const std::lock_guard lock(found_mutex_);
      for (const char* name : {"frechet_distance", "inception_score", "agreement",
                               "variance_within_classes", "variance_share"})
        if (report.contains(name)) found_[name] = report.at(name).get<double>();
      if (report.contains("collapsed")) found_["collapsed"] = collapsed_ ? 1 : 0;
      return done.dump();
    });
  }

  // Once when it begins, not at every evaluation that finds it so.
  void tell_collapse(const nlohmann::ordered_json& report, std::uint64_t version) {
    const bool before = std::exchange(collapsed_, report.at("collapsed").get<bool>());
    if (!collapsed_ || before) return;
    char text[200];
    std::snprintf(
        text, sizeof text,
        "at update %llu samples of a class have %.3f of the real pictures' variance, less "
        "than sngan.collapse_share: the generator makes nearly one picture a class",
        static_cast<unsigned long long>(version), report.at("variance_share").get<double>());
    warn("collapse", text);
  }

  std::string endpoint_;
  bool collapsed_ = false;  // by the last evaluation; of the thread that evaluates
  std::unique_ptr<GenerationEvaluation> generation_;
  std::unique_ptr<PictureEvaluation> pictures_;
  std::mutex found_mutex_;
  std::map<std::string, double> found_;  // by the last evaluation on pictures
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
