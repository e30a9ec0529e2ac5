// The learner actor of a job on pictures: leases positions to data actors, takes whole batches in
// order, updates, commits, publishes. An update that is not finite is counted, and its pictures are
// committed with it: they would only fail again. A detached actor: one update per message to
// itself; a thread of its own serves the data actors.
#include <nlohmann/json.hpp>

#include "actors/config/checks.hpp"
#include "actors/roles/finite_updates.hpp"
#include "actors/roles/parameter_feed.hpp"
#include "actors/roles/picture_data.hpp"
#include "actors/roles/picture_server.hpp"
#include "actors/roles/role_support.hpp"
#include "actors/runtime/thread_settings.hpp"
#include "envs/spec/random.hpp"
#include "learners/loader.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;
namespace data = learners::data;

constexpr milliseconds kWaitForBatch{5};
constexpr const char *kFeedFile = "pictures.state", *kClassesFile = "classes.json";

class PictureLearnerRole final : public RoleBase {
 public:
  using RoleBase::RoleBase;

  Result<void> start() override {
    return make_learner().and_then([this] { return open_feed(); }).and_then([this] {
      return open_parameters();
    });
  }

  void peers(const Peers& peers) override {
    for (std::uint32_t i = 0; i < peers.ended_actors.size(); ++i)
      if (peers.ended_actors[i] > 0) feed_->end({i, peers.ended_actors[i]});
  }

  Result<void> work() override {
    parameters_->serve(milliseconds{0});
    if (has_finished()) {
      blocked_.set("stop");
      std::this_thread::sleep_for(kWaitForBatch);
      report();
      return {};
    }
    blocked_.set("pictures");
    const data::PictureBatch* batch = feed_->next(kWaitForBatch);
    if (batch == nullptr) {
      report();
      return {};
    }
    blocked_.set("");
    auto updated = update(*batch);
    if (updated) feed_->commit();
    report();
    return updated;
  }

  // Between two updates: what the parameters have learnt from is what the feed has committed.
  void checkpoint(const CheckpointRequest& request) override {
    parameters_->publish(learner_->parameters());  // what a last evaluation is of
    const std::string state = nlohmann::json{{"version", learner_->version()}}.dump();
    auto files = learner_->snapshot();
    if (!files) return parts_written(request.checkpoint, tl::unexpected(files.error()), state);
    files->push_back({kFeedFile, feed_->save()});
    const std::string names = nlohmann::json{{"classes", classes_}}.dump();
    files->push_back({kClassesFile, {names.begin(), names.end()}});
    write_parts_later(request, std::move(*files), state);
  }

  void stop() override {
    server_thread_ = {};
    feed_.reset();
  }

 private:
  // The coordinator hears of it in the next report; until then nothing goes beyond.
  bool has_finished() const {
    const auto most = static_cast<std::uint64_t>(most_updates(context().options));
    return most > 0 && learner_->version() >= most;
  }

  Result<void> make_learner() {
    const RunOptions& options = context().options;
    auto set = open_pictures(options, data::Split::kTraining);
    if (!set) return tl::unexpected(set.error());
    classes_ = (*set)->classes();
    feed_options_ = feed_options(options, **set, context().assignment.epoch);
    const auto factory = learners::load_learning_library();
    if (!factory) return tl::unexpected(factory.error());
    auto learner =
        (*factory)(options.job, options.learners.learner,
                   {.spec = {},
                    .seed = stream_seed(static_cast<std::uint64_t>(options.seed), "learner"),
                    .epoch = context().assignment.epoch,
                    .deterministic = false,
                    .pictures = picture_spec(options, **set)});
    if (!learner) return tl::unexpected(learner.error());
    learner_ = std::move(*learner);
    if (context().assignment.restore_directory.empty()) return {};
    auto loaded = learner_->load(context().assignment.restore_directory);
    first_version_ = learner_->version();
    return loaded;
  }

  Result<void> open_feed() {
    feed_ = std::make_shared<data::PictureFeed>(feed_options_);
    if (const std::string& from = context().assignment.restore_directory; !from.empty()) {
      const auto bytes = read_file(std::filesystem::path(from) / kFeedFile);
      if (!bytes) return tl::unexpected(bytes.error());
      if (auto loaded = feed_->load(*bytes); !loaded) return loaded;
    }
    auto server = PictureServer::open(feed_, context().channel_endpoint("pictures"));
    if (!server) return tl::unexpected(server.error());
    server_ = std::move(*server);
    return {};
  }

  Result<void> open_parameters() {
    auto server = ParameterServer::open(context().channel_endpoint("parameters"));
    if (!server) return tl::unexpected(server.error());
    parameters_ = std::move(*server);
    parameters_->publish(learner_->parameters());
    RoleReady message;
    message.data_endpoints = {server_->endpoint()};
    message.parameter_endpoint = parameters_->endpoint();
    message.state_json = nlohmann::json{{"version", learner_->version()}}.dump();
    server_thread_ = std::jthread([server = server_.get()](const std::stop_token& stop) {
      name_thread("pictures");
      while (!stop.stop_requested()) server->serve(kWaitForBatch);
    });
    ready(std::move(message));
    return {};
  }

  Result<void> update(const data::PictureBatch& batch) {
    board().enter("update", learner_->version());
    auto updated = learner_->update(batch.batch);
    board().leave();
    if (!updated) {
      if (updated.error().code != ErrorCode::kNotFinite) return tl::unexpected(updated.error());
      const auto first = finite_.failed(updated.error());
      if (!first) return tl::unexpected(first.error());
      if (*first) warn("not_finite_update", updated.error().message);
      return {};
    }
    finite_.good();
    pictures_ += static_cast<std::uint64_t>(batch.batch.items());
    for (auto& [name, value] : updated->metrics) metrics_[name] = value;
    const auto every = static_cast<std::uint64_t>(context().options.learners.learner.publish_every);
    if (updated->version % every == 0) parameters_->publish(learner_->parameters());
    return {};
  }

  void report() {
    if (!report_due()) return;
    const data::FeedFigures figures = feed_->figures();
    RoleBoard::Snapshot snapshot;
    auto& c = snapshot.counters;
    c["learner_updates"] = static_cast<double>(learner_->version());
    // The run's clock; the hub adds restored updates itself.
    c["actor_steps"] = static_cast<double>(learner_->version() - first_version_);
    c["not_finite_updates"] = static_cast<double>(finite_.count());
    c["pictures"] = static_cast<double>(pictures_);
    c["left_out_pictures"] = static_cast<double>(figures.corrupt);
    c["released_pictures"] = static_cast<double>(figures.released);
    c["stale_segments"] = static_cast<double>(figures.stale);
    c["malformed_segments"] = static_cast<double>(server_->corrupt());
    blocked_.add_to(c);
    snapshot.gauges = metrics_;
    snapshot.gauges["epoch"] =
        static_cast<double>(figures.epoch) +
        static_cast<double>(figures.committed) / static_cast<double>(feed_options_.size);
    snapshot.gauges["batches_ready"] = static_cast<double>(figures.ready);
    if (blocked_.reason() == "pictures") snapshot.waiting_on = feed_->waiting_on();
    if (blocked_.reason() == "stop") snapshot.waiting_on = "stop";
    board().publish(std::move(snapshot));
    // Whoever is idle at the end evaluates the newest parameters, not those of the last
    // publication.
    if (!blocked_.reason().empty() && parameters_->newest()->version != learner_->version())
      parameters_->publish(learner_->parameters());
  }

  data::FeedOptions feed_options_;
  std::vector<std::string> classes_;
  std::unique_ptr<learners::Learner> learner_;
  std::uint64_t first_version_ = 0;  // that this role began with
  std::shared_ptr<data::PictureFeed> feed_;
  std::unique_ptr<PictureServer> server_;
  std::unique_ptr<ParameterServer> parameters_;
  BlockedTime blocked_;
  std::map<std::string, double> metrics_;
  FiniteUpdates finite_;
  std::uint64_t pictures_ = 0;
  std::jthread server_thread_;  // last: joined before what it uses goes
};

}  // namespace

RoleActor spawn_picture_learner_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<PictureLearnerRole>(system, std::move(context));
}

}  // namespace troupe::actors
