// JSON of the telemetry protocol. nlohmann/json stays inside this file and its few siblings,
// because it is slow to compile. Its exceptions end in decode() and decode_snapshot(). No thread
// rule.
#include "actors/telemetry/protocol.hpp"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

namespace troupe::actors::telemetry {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, kKinds> kKindNames = {"metrics", "events", "episodes",
                                                             "evaluations", "status"};

// Thrown by the readers below, caught in decode(): the field's path is the whole message.
struct FieldError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double to_number(const Json& json, const std::string& field) {
  if (json.is_number()) return json.get<double>();
  if (json == "nan") return kUnknown;
  if (json == "inf") return std::numeric_limits<double>::infinity();
  if (json == "-inf") return -std::numeric_limits<double>::infinity();
  throw FieldError("field '" + field + "' is not a number");
}

// Reads members of one object; every missing or mistyped one is an error that names it.
class Reader {
 public:
  Reader(const Json& json, std::string name) : json_(json), name_(std::move(name)) {
    if (!json.is_object()) throw FieldError("'" + name_ + "' is not an object");
  }
  const Json& at(const char* key) const {
    const auto it = json_.find(key);
    if (it == json_.end()) throw FieldError("field '" + path(key) + "' is missing");
    return *it;
  }
  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) throw FieldError("field '" + path(key) + "' is not a string");
    return value.get<std::string>();
  }
  double real(const char* key) const { return to_number(at(key), path(key)); }
  template <class Integer = std::int64_t>
  Integer integer(const char* key) const {
    return to_integer<Integer>(at(key), path(key));
  }
  template <class Integer>
  static Integer to_integer(const Json& value, const std::string& field) {
    const bool fits =
        std::is_signed_v<Integer> ? value.is_number_integer() : value.is_number_unsigned();
    if (!fits) throw FieldError("field '" + field + "' is not an integer in range");
    return value.get<Integer>();
  }
  Metrics metrics(const char* key) const { return to_metrics(at(key), path(key)); }
  static Metrics to_metrics(const Json& value, const std::string& field) {
    if (!value.is_object()) throw FieldError("'" + field + "' is not an object");
    Metrics metrics;
    for (const auto& [name, item] : value.items()) {
      metrics[name] = to_number(item, field + "." + name);
    }
    return metrics;
  }
  const Json& list(const char* key) const {
    const Json& value = at(key);
    if (!value.is_array()) throw FieldError("field '" + path(key) + "' is not a list");
    return value;
  }
  std::string path(const char* key) const { return name_ + "." + key; }

 private:
  const Json& json_;
  std::string name_;
};

Json to_json(const Metrics& metrics) {
  Json json = Json::object();
  for (const auto& [name, value] : metrics) json[name] = number(value);
  return json;
}

Json to_json(const Event& event) { return {{"severity", event.severity}, {"text", event.text}}; }

Json to_json(const Episode& episode) {
  return {{"return", number(episode.episode_return)},
          {"length", episode.length},
          {"environment", episode.environment},
          {"policy_version", episode.policy_version}};
}

Json to_json(const Evaluation& evaluation) {
  Json returns = Json::array();
  for (const double value : evaluation.returns) returns.push_back(number(value));
  return {{"returns", std::move(returns)},
          {"lengths", evaluation.lengths},
          {"mean", number(mean(evaluation.returns))}};
}

Json to_json(const NodeStatus& node) {
  return {{"node", node.node}, {"role", node.role},         {"state", node.state},
          {"pid", node.pid},   {"rate", number(node.rate)}, {"waiting_on", node.waiting_on}};
}

Json to_json(const Wait& wait) {
  return {{"role", wait.role}, {"on", wait.on}, {"share", number(wait.share)}};
}

template <class Items>
Json list_to_json(const Items& items) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

Json to_json(const RunStatus& status) {
  return {{"state", status.state},
          {"reason", status.reason},
          {"job", status.job},
          {"task", status.task},
          {"pid", status.pid},
          {"elapsed", number(status.elapsed)},
          {"eta", number(status.eta)},
          {"target_actor_steps", status.target_actor_steps},
          {"target_updates", status.target_updates},
          {"steps_per_second", number(status.steps_per_second)},
          {"updates_per_second", number(status.updates_per_second)},
          {"samples_per_insert", number(status.samples_per_insert)},
          {"samples_per_insert_configured", number(status.samples_per_insert_configured)},
          {"policy_lag", number(status.policy_lag)},
          {"evaluation_return", number(status.evaluation_return)},
          {"evaluation_steps", status.evaluation_steps},
          {"recent_return", number(status.recent_return)},
          {"episodes", status.episodes},
          {"losses", to_json(status.losses)},
          {"counts", to_json(status.counts)},
          {"waits", list_to_json(status.waits)},
          {"nodes", list_to_json(status.nodes)},
          {"endpoint", status.endpoint},
          {"snapshot_endpoint", status.snapshot_endpoint}};
}

Event to_event(const Reader& reader) {
  return {.severity = reader.text("severity"), .text = reader.text("text")};
}

Episode to_episode(const Reader& reader) {
  return {.episode_return = reader.real("return"),
          .length = reader.integer("length"),
          .environment = reader.integer("environment"),
          .policy_version = reader.integer<std::uint64_t>("policy_version")};
}

Evaluation to_evaluation(const Reader& reader) {
  Evaluation evaluation;
  for (const Json& item : reader.list("returns")) {
    evaluation.returns.push_back(to_number(item, reader.path("returns")));
  }
  for (const Json& item : reader.list("lengths")) {
    evaluation.lengths.push_back(Reader::to_integer<std::int64_t>(item, reader.path("lengths")));
  }
  return evaluation;
}

NodeStatus to_node(const Reader& reader) {
  return {.node = reader.text("node"),
          .role = reader.text("role"),
          .state = reader.text("state"),
          .pid = reader.integer("pid"),
          .rate = reader.real("rate"),
          .waiting_on = reader.text("waiting_on")};
}

RunStatus to_status(const Reader& reader) {
  RunStatus status;
  status.state = reader.text("state");
  status.reason = reader.text("reason");
  status.job = reader.text("job");
  status.task = reader.text("task");
  status.pid = reader.integer("pid");
  status.elapsed = reader.real("elapsed");
  status.eta = reader.real("eta");
  status.target_actor_steps = reader.integer("target_actor_steps");
  status.target_updates = reader.integer("target_updates");
  status.steps_per_second = reader.real("steps_per_second");
  status.updates_per_second = reader.real("updates_per_second");
  status.samples_per_insert = reader.real("samples_per_insert");
  status.samples_per_insert_configured = reader.real("samples_per_insert_configured");
  status.policy_lag = reader.real("policy_lag");
  status.evaluation_return = reader.real("evaluation_return");
  status.evaluation_steps = reader.integer("evaluation_steps");
  status.recent_return = reader.real("recent_return");
  status.episodes = reader.integer("episodes");
  status.losses = reader.metrics("losses");
  status.counts = reader.metrics("counts");
  for (const Json& item : reader.list("waits")) {
    const Reader wait(item, "payload.waits");
    status.waits.push_back(
        {.role = wait.text("role"), .on = wait.text("on"), .share = wait.real("share")});
  }
  for (const Json& item : reader.list("nodes")) {
    status.nodes.push_back(to_node(Reader(item, "payload.nodes")));
  }
  status.endpoint = reader.text("endpoint");
  status.snapshot_endpoint = reader.text("snapshot_endpoint");
  return status;
}

void check_version(const Reader& reader) {
  const auto version = reader.integer("v");
  if (version < 1 || version > kProtocolVersion) {
    throw FieldError("protocol version " + std::to_string(version) + " is not supported (this is " +
                     std::to_string(kProtocolVersion) + ")");
  }
}

Message to_message(const Json& json) {
  const Reader reader(json, "message");
  check_version(reader);
  Message message;
  message.run = reader.text("run");
  message.node = reader.text("node");
  message.session = reader.integer<std::uint64_t>("session");
  message.sequence = reader.integer<std::uint64_t>("seq");
  message.time = reader.real("time");
  message.actor_steps = reader.integer("actor_steps");
  message.learner_updates = reader.integer("learner_updates");
  const std::string kind = reader.text("kind");
  const Json& payload = reader.at("payload");
  const auto known = kind_of_topic(kind);
  if (!known) throw FieldError("kind '" + kind + "' is not known");
  switch (*known) {
    case Kind::kMetrics:
      message.payload = Reader::to_metrics(payload, "payload");
      break;
    case Kind::kEvents:
      message.payload = to_event(Reader(payload, "payload"));
      break;
    case Kind::kEpisodes:
      message.payload = to_episode(Reader(payload, "payload"));
      break;
    case Kind::kEvaluations:
      message.payload = to_evaluation(Reader(payload, "payload"));
      break;
    case Kind::kStatus:
      message.payload = to_status(Reader(payload, "payload"));
      break;
  }
  return message;
}

std::vector<Message> to_messages(const Json& list) {
  std::vector<Message> messages;
  for (const Json& item : list) messages.push_back(to_message(item));
  return messages;
}

Snapshot to_snapshot(const Json& json) {
  const Reader reader(json, "snapshot");
  check_version(reader);
  Snapshot snapshot;
  snapshot.run = reader.text("run");
  snapshot.session = reader.integer<std::uint64_t>("session");
  const Reader sequences(reader.at("sequences"), "sequences");
  for (std::size_t i = 0; i < kKinds; ++i) {
    snapshot.sequences[i] = sequences.integer<std::uint64_t>(kKindNames[i].data());
  }
  snapshot.metrics = to_messages(reader.list("metrics"));
  snapshot.events = to_messages(reader.list("events"));
  snapshot.episodes = to_messages(reader.list("episodes"));
  snapshot.evaluations = to_messages(reader.list("evaluations"));
  if (!reader.at("status").is_null()) snapshot.status = to_message(reader.at("status"));
  return snapshot;
}

template <class Convert>
auto parse(std::string_view text, const char* what, Convert convert)
    -> Result<decltype(convert(Json()))> {
  try {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) throw FieldError("it is not JSON");
    return convert(json);
  } catch (const std::exception& error) {
    return fail(ErrorCode::kCorrupt, std::string(what) + " is refused: " + error.what());
  }
}

}  // namespace

std::string_view kind_name(Kind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::optional<Kind> kind_of_topic(std::string_view topic) {
  const std::string_view name = topic.substr(0, topic.find('/'));
  for (std::size_t i = 0; i < kKinds; ++i) {
    if (kKindNames[i] == name) return static_cast<Kind>(i);
  }
  return std::nullopt;
}

double mean(const std::vector<double>& values) {
  if (values.empty()) return kUnknown;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool is_final(const RunStatus& status) {
  return status.state == "finished" || status.state == "failed" || status.state == "interrupted";
}

std::string encode(const Message& message) {
  const Json json = {{"v", kProtocolVersion},
                     {"kind", kind_name(message.kind())},
                     {"run", message.run},
                     {"session", message.session},
                     {"node", message.node},
                     {"seq", message.sequence},
                     {"time", number(message.time)},
                     {"actor_steps", message.actor_steps},
                     {"learner_updates", message.learner_updates},
                     {"payload", std::visit([](const auto& payload) { return to_json(payload); },
                                            message.payload)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Message> decode(std::string_view text) {
  return parse(text, "A telemetry message", to_message);
}

Result<Snapshot> decode_snapshot(std::string_view text) {
  return parse(text, "A telemetry snapshot", to_snapshot);
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace troupe::actors::telemetry
