// Implements light nodes and the run around them.
#include "tests/actors/roles/light_nodes.hpp"

#include <cstdlib>
#include <future>
#include <thread>

#include "actors/config/checks.hpp"
#include "actors/config/printer.hpp"
#include "actors/roles/hub.hpp"
#include "actors/roles/node.hpp"
#include "actors/roles/role_support.hpp"
#include "actors/roles/topology.hpp"
#include "actors/runtime/lifeline.hpp"
#include "actors/runtime/log.hpp"
#include "envs/spec/files.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

constexpr double kStepsPerBeat = 100;  // that an environment actor claims to have made

// Reports have as many figures as those of the role it stands for.
class LightRole : public RoleBase {
 public:
  using RoleBase::RoleBase;

  Result<void> start() override {
    RoleReady message;
    if (context().assignment.role == "learner") {
      for (std::int64_t i = 0; i < context().options.replay.shards; ++i)
        message.data_endpoints.push_back(context().channel_endpoint("data"));
      message.parameter_endpoint = context().channel_endpoint("parameters");
    }
    ready(std::move(message));
    return {};
  }

  Result<void> work() override {
    std::this_thread::sleep_for(milliseconds(50));
    const std::string& role = context().assignment.role;
    // Their limit, 20 a second, is kept by the base.
    if (role == "environment") episode(0, 50, 50, static_cast<std::uint64_t>(beats_));
    if (!report_due()) return {};
    ++beats_;
    if (role == "environment" && context().options.learners.learner.d4pg.normalise_observations)
      send_statistics(std::vector<std::uint8_t>(400));
    RoleBoard::Snapshot snapshot;
    if (role == "environment") report_steps(snapshot);
    if (role == "learner") report_updates(snapshot);
    board().publish(std::move(snapshot));
    return {};
  }

  void checkpoint(const CheckpointRequest& request) override {
    parts_written(request.checkpoint, std::vector<FilePart>{}, "{}");
  }

 private:
  void report_steps(RoleBoard::Snapshot& snapshot) const {
    auto& c = snapshot.counters;
    c["actor_steps"] = kStepsPerBeat * beats_;
    c["episodes"] = 2 * beats_;
    for (const char* name :
         {"invalid_episodes", "nan_transitions", "refused_steps", "resent_chunks"})
      c[name] = 0;
    c["replay_credit_blocked_ms"] = 50.5 * beats_;
    c["parameters_blocked_ms"] = 12.25;
    snapshot.gauges["policy_version"] = 10 * beats_;
    snapshot.gauges["unacknowledged_chunks"] = 2;
    snapshot.waiting_on = "replay_credit";
  }

  void report_updates(RoleBoard::Snapshot& snapshot) const {
    auto& c = snapshot.counters;
    c["learner_updates"] = 10 * beats_;
    c["not_finite_updates"] = 0;
    c["sample_blocked_ms"] = 10 * beats_;
    for (std::int64_t i = 0; i < context().options.replay.shards; ++i) {
      const std::string prefix = "shard" + std::to_string(i) + "/";
      c[prefix + "inserted_steps"] = snapshot.gauges[prefix + "held_steps"] =
          kStepsPerBeat * beats_;
      for (const char* name : {"removed_steps", "prefilled_steps", "insert_blocked_ms"})
        c[prefix + name] = 0;
    }
    for (const char* name : {"limiter_cursor", "samples_per_insert", "sample_age", "loss/critic",
                             "loss/policy", "gradient_norm/critic", "gradient_norm/policy"})
      snapshot.gauges[name] = 1.5 * beats_;
  }

  double beats_ = 0;
};

Result<RoleActor> make_light_role(caf::actor_system& system, RoleContext context) {
  return spawn_role_of<LightRole>(system, std::move(context));
}

void register_types(caf::actor_system_config& config) {
  config.add_message_types<caf::id_block::troupe>();
}

}  // namespace

int light_node_main(int argc, char** argv) {
  NodeOptions options{.name = {}, .coordinator = {}, .host = {}, .on_end = {}};
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--connect") {
      options.host = value.substr(0, value.rfind(':'));
      options.port = static_cast<std::uint16_t>(std::stoi(value.substr(value.rfind(':') + 1)));
    }
    if (key == "--name") options.name = value;
    if (key == "--incarnation") options.incarnation = static_cast<std::uint32_t>(std::stoul(value));
    if (key == "--run-id") options.run_id = std::stoull(value);
  }
  (void)start_logging({.level = LogLevel::kInfo, .console = true, .file = {}});
  std::promise<void> ended;
  std::once_flag once;
  const auto end = [&] { std::call_once(once, [&] { ended.set_value(); }); };
  const auto lifeline = Lifeline::attach(end, milliseconds(3000));
  options.on_end = [&](const std::string&, bool) { end(); };
  options.make_role = make_light_role;
  const std::string run = std::to_string(options.run_id);
  System system({.run = run, .threads = 1}, register_types);
  spawn_node(system.get(), std::move(options));
  ended.get_future().wait();
  std::this_thread::sleep_for(milliseconds(50));  // its last message is on its way
  std::_Exit(0);
}

RunOptions light_options(std::int64_t actors) {
  RunOptions options;
  options.job = "null";
  options.environment.name = "probe/const";
  options.actors.count = options.actors.max = actors;
  options.replay.samples_per_insert = 0;  // the ratio's arithmetic would forbid many actors
  options.evaluation.every = 0;
  options.checkpoint.every = Duration(0);
  return options;
}

struct LightRun::Parts {
  std::filesystem::path directory;
  std::shared_ptr<HubSetup> hub = std::make_shared<HubSetup>();
  std::shared_ptr<CoordinatorSetup> setup = std::make_shared<CoordinatorSetup>();
  std::promise<void> over;
  std::future<void> ended = over.get_future();
  std::optional<System> system;
  CoordinatorActor coordinator;
  std::size_t nodes = 0;
};

LightRun::LightRun(const RunOptions& options, const std::filesystem::path& directory)
    : parts_(std::make_unique<Parts>()) {
  Parts& p = *parts_;
  p.directory = directory;
  std::filesystem::create_directories(directory / "log");
  (void)start_logging({.level = LogLevel::kError,
                       .console = true,
                       .file = (directory / "log" / "coordinator.log").string(),
                       .file_level = LogLevel::kInfo});
  p.hub->every = options.telemetry.every;
  p.hub->publisher = std::make_unique<telemetry::Publisher>(std::move(
      telemetry::Publisher::open(
          {.run = "light", .endpoint = options.telemetry.endpoint, .snapshot_endpoint = {}})
          .value()));
  p.hub->files = std::make_unique<telemetry::RunFiles>(
      std::move(telemetry::RunFiles::open(directory, 0).value()));
  const std::uint64_t run_id = static_cast<std::uint64_t>(::getpid());
  p.system.emplace(SystemOptions{.run = std::to_string(run_id)}, register_types);
  p.setup->options = options;
  p.setup->config = print_yaml(options);
  p.setup->run_id = run_id;
  p.setup->run_directory = directory;
  p.setup->socket_directory = directory / "sockets";  // nobody opens any
  p.setup->store = std::make_unique<CheckpointStore>(std::move(
      CheckpointStore::open(directory / "checkpoints", 1, [](const std::string&) {}).value()));
  p.setup->secret = "of the measurement";
  p.setup->hub = spawn_hub(p.system->get(), p.hub);
  p.setup->on_over = [&p](int, const std::string&) { p.over.set_value(); };
  p.coordinator = spawn_coordinator(p.system->get(), p.setup);
  p.setup->port =
      publish_on_loopback(p.system->get(), caf::actor_cast<caf::actor>(p.coordinator)).value();
  p.nodes = plan_topology(options).size();
  caf::anon_send(p.setup->hub, RunPhase{"running", {}, 0, 0});
  caf::anon_send(p.coordinator, beat_atom_v);
}

LightRun::~LightRun() {
  (void)stop(std::chrono::seconds(20));
  // CAF 0.17 may hang where an actor is left over.
  caf::anon_send_exit(parts_->setup->hub, caf::exit_reason::kill);
  parts_->setup->hub = nullptr;
  parts_->coordinator = nullptr;
}

bool LightRun::wait_ready(std::chrono::seconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end) {
    const std::string text = log();
    std::size_t serving = 0;
    for (std::size_t at = 0; (at = text.find(" serves", at)) != std::string::npos; ++at) ++serving;
    if (serving >= parts_->nodes) return true;
    std::this_thread::sleep_for(milliseconds(200));
  }
  return false;
}

std::uint64_t LightRun::messages() const { return parts_->setup->messages; }

std::string LightRun::log() const {
  flush_log();
  const auto bytes = read_file(parts_->directory / "log" / "coordinator.log");
  return bytes ? std::string(bytes->begin(), bytes->end()) : std::string();
}

bool LightRun::stop(std::chrono::seconds limit) {
  if (!parts_->ended.valid()) return true;
  caf::anon_send(parts_->coordinator,
                 ControlRequest{parts_->setup->secret, "stop",
                                R"({"now":true,"reason":"the measurement is over"})"});
  const bool ended = parts_->ended.wait_for(limit) == std::future_status::ready;
  if (ended) parts_->ended.get();
  return ended;
}

}  // namespace troupe::actors
