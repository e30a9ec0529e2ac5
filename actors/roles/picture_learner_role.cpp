// The learner actor of a job on pictures: leases positions to data actors, takes whole batches in
// order, updates, commits, publishes. Of several learners the one that leads does so and gives
// every batch to the others; where they are in the data set goes with their state, so that whoever
// leads next begins there. An update that is not finite is counted, and its pictures are committed
// with it: they would only fail again. A detached actor: one update per message to itself; a thread
// of its own serves the data actors.
#include <nlohmann/json.hpp>

#include "actors/config/checks.hpp"
#include "actors/roles/finite_updates.hpp"
#include "actors/roles/learner_seat.hpp"
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
constexpr int kMostJoins = 20;  // groups in a row that came to nothing before it gives up
constexpr const char *kFeedFile = "pictures.state", *kClassesFile = "classes.json";

class PictureLearnerRole final : public RoleBase {
 public:
  using RoleBase::RoleBase;

  Result<void> start() override {
    return make_learner().and_then([this] { return restore(); }).and_then([this] {
      return open();
    });
  }

  void peers(const Peers& peers) override {
    ended_ = peers.ended_actors;
    if (feed_) end_actors(*feed_);
    if (seat_) seat_->peers(peers);
  }

  void group(const GroupFormed& group) override {
    if (seat_) seat_->told(group);
  }

  Result<void> work() override {
    parameters_->serve(milliseconds{0});
    if (seat_ && seat_->has_news()) return change_group();
    if (seat_ && !seat_->stands()) {
      seat_->ask_again();
      return idle("group");
    }
    if (has_finished()) return idle("stop");
    blocked_.set("pictures");
    const auto batch = learner_->share(leads() ? feed_->next(kWaitForBatch) : nullptr);
    if (!batch) return group_over(batch.error());
    if (*batch != nullptr) {
      blocked_.set("");
      if (auto updated = update(**batch); !updated) return updated;
    }
    report();
    return {};
  }

  // Between two updates: what the parameters have learnt from is what the feed has committed.
  void checkpoint(const CheckpointRequest& request) override {
    parameters_->publish(learner_->parameters());  // what a last evaluation is of
    const std::string state = nlohmann::json{{"version", learner_->version()}}.dump();
    auto files = learner_->snapshot();
    if (!files) return parts_written(request.checkpoint, tl::unexpected(files.error()), state);
    files->push_back({kFeedFile, feed_at(learner_->place())->save()});
    const std::string names = nlohmann::json{{"classes", classes_}}.dump();
    files->push_back({kClassesFile, {names.begin(), names.end()}});
    write_parts_later(request, std::move(*files), state);
  }

  void stop() override {
    server_thread_ = {};
    set_feed(nullptr);
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
    if (learns_in_groups(options)) seat_.emplace(context(), *learner_, EnvSpec{});
    if (context().assignment.restore_directory.empty()) return {};
    return learner_->load(context().assignment.restore_directory);
  }

  // The learner's place in the data set, of a run that goes on.
  Result<void> restore() {
    const std::string& from = context().assignment.restore_directory;
    if (from.empty()) return {};
    const auto bytes = read_file(std::filesystem::path(from) / kFeedFile);
    if (!bytes) return tl::unexpected(bytes.error());
    data::PictureFeed feed(feed_options_);
    return feed.load(*bytes).map([&] { learner_->set_place(feed.place()); });
  }

  std::shared_ptr<data::PictureFeed> feed_at(const data::DataPlace& place) const {
    auto feed = std::make_shared<data::PictureFeed>(feed_options_);
    feed->begin_at(place);
    return feed;
  }

  void end_actors(data::PictureFeed& feed) const {
    for (std::uint32_t i = 0; i < ended_.size(); ++i)
      if (ended_[i] > 0) feed.end({i, ended_[i]});
  }

  void set_feed(std::shared_ptr<data::PictureFeed> feed) {
    feed_ = std::move(feed);
    if (feed_) end_actors(*feed_);
    if (server_) server_->set_feed(feed_);
  }

  bool leads() const { return !seat_ || seat_->leads(); }

  Result<void> idle(const char* reason) {
    blocked_.set(reason);
    report();
    std::this_thread::sleep_for(kWaitForBatch);
    return {};
  }

  Result<void> change_group() {
    board().enter("joining the other learners, at update", learner_->version());
    auto joined = seat_->join();
    board().leave();
    if (!joined && ++failed_joins_ >= kMostJoins) return joined;
    if (!joined) return {};
    failed_joins_ = 0;
    if (!leads()) {
      set_feed(nullptr);
      return {};
    }
    // Leases of what was not delivered to the feed before this one are void.
    feed_options_.learner_epoch = seat_->group().generation;
    if (!feed_ || feed_->place() != learner_->place()) set_feed(feed_at(learner_->place()));
    parameters_->publish(learner_->parameters());
    return {};
  }

  // An error of a learner that trains alone is its own.
  Result<void> group_over(const Error& error) {
    if (!seat_) return tl::unexpected(error);
    seat_->over(error.message);
    return {};
  }

  Result<void> open() {
    auto pictures = PictureServer::open(data::picture_signature(feed_options_),
                                        context().channel_endpoint("pictures"));
    if (!pictures) return tl::unexpected(pictures.error());
    server_ = std::move(*pictures);
    if (!seat_) set_feed(feed_at(learner_->place()));
    auto server = ParameterServer::open(context().channel_endpoint("parameters"));
    if (!server) return tl::unexpected(server.error());
    parameters_ = std::move(*server);
    if (leads()) parameters_->publish(learner_->parameters());
    RoleReady message;
    message.data_endpoints = {server_->endpoint()};
    message.parameter_endpoint = parameters_->endpoint();
    message.state_json = nlohmann::json{{"version", learner_->version()}}.dump();
    server_thread_ = std::jthread([server = server_.get()](const std::stop_token& stop) {
      name_thread("pictures");
      while (!stop.stop_requested()) server->serve(kWaitForBatch);
    });
    ready(std::move(message));
    if (seat_) seat_->over("");
    return {};
  }

  Result<void> update(const data::PictureBatch& batch) {
    const std::uint64_t before = learner_->version();
    board().enter("update", before);
    auto updated = learner_->update(batch.batch);
    board().leave();
    // Made, even if the group failed at what followed.
    const bool made = learner_->version() > before;
    if (!made && updated.error().code != ErrorCode::kNotFinite) return group_over(updated.error());
    if (made) count(batch);
    commit(batch);
    if (!made) return not_finite(updated.error());
    finite_.good();
    if (!updated) return group_over(updated.error());
    compared_ += updated->compared ? 1 : 0;
    for (auto& [name, value] : updated->metrics) metrics_[name] = value;
    const auto every = static_cast<std::uint64_t>(context().options.learners.learner.publish_every);
    if (leads() && updated->version % every == 0) parameters_->publish(learner_->parameters());
    return {};
  }

  void count(const data::PictureBatch& batch) {
    if (!leads()) return;
    ++led_updates_;
    pictures_ += static_cast<std::uint64_t>(batch.batch.items());
  }

  void commit(const data::PictureBatch& batch) {
    learner_->set_place(batch.after);
    if (leads()) feed_->commit();  // and with it the batch
  }

  Result<void> not_finite(const Error& error) {
    const auto first = finite_.failed(error);
    if (!first) return tl::unexpected(first.error());
    if (*first) warn("not_finite_update", error.message);
    return {};
  }

  void report() {
    if (!report_due()) return;
    RoleBoard::Snapshot snapshot;
    blocked_.add_to(snapshot.counters);
    if (leads() && feed_) report_lead(snapshot);
    if (blocked_.reason() == "pictures")
      snapshot.waiting_on = leads() ? feed_->waiting_on() : "the learner that leads has no batch";
    if (blocked_.reason() == "group") snapshot.waiting_on = "the learners form a group";
    if (blocked_.reason() == "stop") snapshot.waiting_on = "stop";
    board().publish(std::move(snapshot));
    // Whoever is idle at the end evaluates the newest parameters, not those of the last
    // publication.
    if (leads() && !blocked_.reason().empty() &&
        parameters_->newest()->version != learner_->version())
      parameters_->publish(learner_->parameters());
  }

  // Of the whole run.
  void report_lead(RoleBoard::Snapshot& snapshot) const {
    const data::FeedFigures figures = feed_->figures();
    auto& c = snapshot.counters;
    c["learner_updates"] = static_cast<double>(learner_->version());
    // The run's clock; the hub adds restored updates itself, and what others made while they led.
    c["actor_steps"] = static_cast<double>(led_updates_);
    c["not_finite_updates"] = static_cast<double>(finite_.count());
    c["pictures"] = static_cast<double>(pictures_);
    c["left_out_pictures"] = static_cast<double>(figures.corrupt);
    c["released_pictures"] = static_cast<double>(figures.released);
    c["stale_segments"] = static_cast<double>(figures.stale);
    c["malformed_segments"] = static_cast<double>(server_->corrupt());
    snapshot.gauges = metrics_;
    snapshot.gauges["epoch"] =
        static_cast<double>(figures.epoch) +
        static_cast<double>(figures.committed) / static_cast<double>(feed_options_.size);
    snapshot.gauges["batches_ready"] = static_cast<double>(figures.ready);
    if (!seat_) return;
    snapshot.gauges["learners_in_step"] = seat_->group().size;
    snapshot.gauges["learner_generation"] = seat_->group().generation;
    snapshot.gauges["states_compared"] = static_cast<double>(compared_);
  }

  data::FeedOptions feed_options_;
  std::vector<std::string> classes_;
  std::unique_ptr<learners::Learner> learner_;
  std::optional<LearnerSeat> seat_;          // among several learners
  std::vector<std::uint32_t> ended_;         // incarnations of data actors, by index
  std::shared_ptr<data::PictureFeed> feed_;  // of the one that leads
  std::unique_ptr<PictureServer> server_;
  std::unique_ptr<ParameterServer> parameters_;
  BlockedTime blocked_;
  std::map<std::string, double> metrics_;
  FiniteUpdates finite_;
  std::uint64_t pictures_ = 0, led_updates_ = 0;  // of updates made while it led
  std::uint64_t compared_ = 0;                    // updates after which all states were found equal
  int failed_joins_ = 0;
  std::jthread server_thread_;  // last: joined before what it uses goes
};

}  // namespace

RoleActor spawn_picture_learner_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<PictureLearnerRole>(system, std::move(context));
}

}  // namespace troupe::actors
