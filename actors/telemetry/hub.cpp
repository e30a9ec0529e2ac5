// See hub.hpp. Used by one thread at a time.
#include "actors/telemetry/hub.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

namespace troupe::actors::telemetry {
namespace {

constexpr std::size_t kRecentEpisodes = 20;
constexpr double kEtaHorizon = 30;         // s of rates that the ETA extrapolates
constexpr double kNoticeableShare = 0.01;  // waits below are not worth naming

// Mean over what was added; NaN when nothing was.
struct Mean {
  double sum = 0;
  int count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  double get() const { return count == 0 ? kUnknown : sum / count; }
};

// A part of wall time, from milliseconds per second. Reports that a busy machine delivers in
// bunches would make it more than all.
double share_of(double milliseconds_per_second) {
  return std::isnan(milliseconds_per_second) ? kUnknown
                                             : std::min(1.0, milliseconds_per_second / 1000);
}

// "insert" of "insert_blocked_ms" or "insert_wait_ms"; empty for any other counter, and for those
// of a part of the node ("shard0/insert_blocked_ms"), which is not what the node itself waits for.
std::string_view waited_for(std::string_view counter) {
  if (counter.find('/') != std::string_view::npos) return {};
  for (const std::string_view suffix : {"_blocked_ms", "_wait_ms"}) {
    if (counter.ends_with(suffix)) return counter.substr(0, counter.size() - suffix.size());
  }
  return {};
}

bool is_loss(const std::string& gauge) {
  return gauge == "loss" || gauge.starts_with("loss/") || gauge == "accuracy" || gauge == "epoch";
}

void put(Metrics& values, const std::string& name, double value) {
  if (!std::isnan(value)) values[name] = value;
}

}  // namespace

TelemetryHub::TelemetryHub(HubOptions options, double now)
    : options_(std::move(options)), start_(now), learner_updates_(options_.restored_updates) {
  totals_["actor_steps"].value = static_cast<double>(options_.restored_actor_steps);
  totals_["actor_steps"].rate.add(now, totals_["actor_steps"].value);
  update_rate_.add(now, static_cast<double>(learner_updates_));
}

void TelemetryHub::add_to_total(const std::string& name, double increase, double now) {
  Total& total = totals_[name];
  total.value += increase;
  total.rate.add(now, total.value);
}

void TelemetryHub::report(const NodeReport& report, double now) {
  Node& node = nodes_[report.node];
  if (report.incarnation < node.last.incarnation) return;  // a dead predecessor's, still under way
  const bool reborn = node.last.incarnation != report.incarnation;
  if (reborn) node.removed = false;
  if (reborn) node.rates.clear();
  for (const auto& [name, value] : report.counters) {
    const auto before = node.last.counters.find(name);
    const bool continues = !reborn && before != node.last.counters.end() && before->second <= value;
    node.rates[name].add(now, value);
    if (name != "learner_updates") {
      add_to_total(name, continues ? value - before->second : value, now);
    }
  }
  node.status.node = report.node;
  node.status.role = report.role;
  if (node.status.state.empty()) node.status.state = "running";
  node.last = report;

  std::int64_t newest = -1;
  for (const auto& [name, other] : nodes_) {
    if (other.removed) continue;
    const auto version = other.last.counters.find("learner_updates");
    if (version != other.last.counters.end()) {
      newest = std::max(newest, static_cast<std::int64_t>(version->second));
    }
  }
  if (newest >= 0) learner_updates_ = newest;
  update_rate_.add(now, static_cast<double>(learner_updates_));
}

void TelemetryHub::set_node(const NodeStatus& status) {
  Node& node = nodes_[status.node];
  node.status = status;
  node.removed = false;
}

void TelemetryHub::remove_node(const std::string& name) {
  const auto node = nodes_.find(name);
  if (node == nodes_.end()) return;
  node->second.removed = true;
  node->second.rates.clear();
}

void TelemetryHub::add_episode(const Episode& episode) {
  ++episodes_;
  recent_returns_.push_back(episode.episode_return);
  if (recent_returns_.size() > kRecentEpisodes) recent_returns_.pop_front();
}

void TelemetryHub::add_evaluation(const Evaluation& evaluation, std::int64_t actor_steps) {
  evaluation_return_ = mean(evaluation.returns);
  evaluation_steps_ = actor_steps;
}

void TelemetryHub::set_state(const std::string& state, const std::string& reason) {
  state_ = state;
  reason_ = reason;
}

void TelemetryHub::count(const std::string& name, double increment) { counts_[name] += increment; }

void TelemetryHub::set_count(const std::string& name, double total) { counts_[name] = total; }

std::int64_t TelemetryHub::actor_steps() const {
  return static_cast<std::int64_t>(totals_.at("actor_steps").value);
}

double TelemetryHub::total_rate(const std::string& name, double now) const {
  const auto total = totals_.find(name);
  return total == totals_.end() ? kUnknown : total->second.rate.rate(now);
}

double TelemetryHub::samples_per_insert(double now) const {
  const double inserted = total_rate("inserted", now);
  return inserted > 0 ? total_rate("sampled", now) / inserted : kUnknown;
}

double TelemetryHub::policy_lag() const {
  Mean reported, difference;
  for (const auto& [name, node] : nodes_) {
    if (node.removed) continue;
    if (const auto lag = node.last.gauges.find("policy_lag"); lag != node.last.gauges.end()) {
      reported.add(lag->second);
    }
    const auto version = node.last.gauges.find("policy_version");
    if (version != node.last.gauges.end()) {
      difference.add(std::max(0.0, static_cast<double>(learner_updates_) - version->second));
    }
  }
  return reported.count > 0 ? reported.get() : difference.get();
}

double TelemetryHub::elapsed(double now) const { return options_.earlier_elapsed + now - start_; }

double TelemetryHub::eta(double now) const {
  double soonest = kUnknown;
  const auto consider = [&soonest](double target, double present, double rate) {
    if (target <= 0) return;
    const double left = std::max(0.0, target - present);
    if (left == 0 || rate > 0) soonest = std::fmin(soonest, left == 0 ? 0 : left / rate);
  };
  const Total& steps = totals_.at("actor_steps");
  consider(static_cast<double>(options_.target_actor_steps), steps.value,
           steps.rate.rate(now, kEtaHorizon));
  consider(static_cast<double>(options_.target_updates), static_cast<double>(learner_updates_),
           update_rate_.rate(now, kEtaHorizon));
  consider(options_.target_elapsed, elapsed(now), 1);
  return soonest;
}

double TelemetryHub::node_rate(const Node& node, double now) const {
  for (const char* work : {"actor_steps", "learner_updates", "inserted"}) {
    const auto rate = node.rates.find(work);
    if (rate != node.rates.end()) return rate->second.rate(now);
  }
  return kUnknown;
}

std::vector<Wait> TelemetryHub::waits(double now) const {
  std::map<std::string, std::map<std::string, Mean>> shares;  // role, what
  std::map<std::string, std::map<std::string, int>> said;     // role, waiting_on
  for (const auto& [name, node] : nodes_) {
    if (node.removed) continue;
    if (!node.last.waiting_on.empty()) ++said[node.status.role][node.last.waiting_on];
    for (const auto& [counter, rate] : node.rates) {
      const std::string_view what = waited_for(counter);
      const double share = share_of(rate.rate(now));
      if (!what.empty() && !std::isnan(share)) {
        shares[node.status.role][std::string(what)].add(share);
      }
    }
  }
  std::set<std::string> roles;
  for (const auto& [role, unused] : shares) roles.insert(role);
  for (const auto& [role, unused] : said) roles.insert(role);

  std::vector<Wait> waits;
  for (const std::string& role : roles) {
    Wait worst{.role = role, .on = {}, .share = kUnknown};
    for (const auto& [what, share] : shares[role]) {
      if (share.get() < kNoticeableShare || share.get() <= worst.share) continue;
      worst = {.role = role, .on = what, .share = share.get()};
    }
    if (worst.on.empty()) {
      int most = 0;
      for (const auto& [on, nodes] : said[role]) {
        if (nodes > most) worst.on = on;
        most = std::max(most, nodes);
      }
    }
    if (!worst.on.empty()) waits.push_back(std::move(worst));
  }
  return waits;
}

RunStatus TelemetryHub::status(double now) const {
  RunStatus status;
  status.state = state_;
  status.reason = reason_;
  status.job = options_.job;
  status.task = options_.task;
  status.pid = options_.pid;
  status.elapsed = elapsed(now);
  status.eta = is_final(status) ? 0 : eta(now);
  status.target_actor_steps = options_.target_actor_steps;
  status.target_updates = options_.target_updates;
  status.steps_per_second = total_rate("actor_steps", now);
  status.updates_per_second = update_rate_.rate(now);
  status.samples_per_insert = samples_per_insert(now);
  status.samples_per_insert_configured = options_.samples_per_insert;
  status.policy_lag = policy_lag();
  status.evaluation_return = evaluation_return_;
  status.evaluation_steps = evaluation_steps_;
  status.recent_return = mean({recent_returns_.begin(), recent_returns_.end()});
  status.episodes = episodes_;
  status.counts = counts_;
  status.waits = waits(now);
  for (const auto& [name, node] : nodes_) {
    if (node.removed) continue;
    for (const auto& [gauge, value] : node.last.gauges) {
      if (is_loss(gauge)) status.losses[gauge] = value;
    }
    NodeStatus shown = node.status;
    shown.rate = node_rate(node, now);
    shown.waiting_on = node.last.waiting_on;
    status.nodes.push_back(std::move(shown));
  }
  return status;
}

MetricsRow TelemetryHub::row(double now, double unix_time) const {
  MetricsRow row{.time = unix_time,
                 .elapsed = elapsed(now),
                 .actor_steps = actor_steps(),
                 .learner_updates = learner_updates_,
                 .values = {}};
  put(row.values, "steps_per_second", total_rate("actor_steps", now));
  put(row.values, "updates_per_second", update_rate_.rate(now));
  put(row.values, "samples_per_insert", samples_per_insert(now));
  put(row.values, "policy_lag", policy_lag());
  put(row.values, "episode_return", mean({recent_returns_.begin(), recent_returns_.end()}));
  put(row.values, "evaluation_return", evaluation_return_);

  std::map<std::string, Mean> means;
  for (const auto& [name, node] : nodes_) {
    if (node.removed) continue;
    const std::string prefix = node.status.role + "/";
    for (const auto& [gauge, value] : node.last.gauges) means[prefix + gauge].add(value);
    for (const auto& [counter, window] : node.rates) {
      const double rate = window.rate(now);
      if (std::isnan(rate)) continue;
      if (counter.ends_with("_ms")) {
        means[prefix + counter.substr(0, counter.size() - 3) + "_share"].add(share_of(rate));
      } else {
        row.values[prefix + counter + "_per_second"] += rate;
      }
    }
  }
  for (const auto& [name, value] : means) row.values[name] = value.get();
  for (const auto& [name, value] : counts_) row.values["count/" + name] = value;
  return row;
}

}  // namespace troupe::actors::telemetry
