// See watch_view.hpp. Pure; one thread.
#include "actors/telemetry/watch_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace troupe::actors::telemetry {
namespace {

constexpr std::size_t kMostEvents = 100, kMostEpisodes = 500, kMostEvaluations = 5000;
constexpr double kNoticeablySilent = 5;   // s
constexpr std::size_t kScaleColumns = 9;  // of the plot's y axis

using Lines = std::vector<StyledLine>;

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "  ") + part;
  return text;
}

std::string list_metrics(const std::string& title, const Metrics& metrics) {
  std::vector<std::string> parts = {title};
  for (const auto& [name, value] : metrics) parts.push_back(name + " " + format_number(value));
  return joined(parts);
}

std::string local_time(double unix_time) {
  const auto seconds = static_cast<std::time_t>(unix_time);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &parts);
  return text;
}

void add_header(const WatchModel& model, Lines& lines) {
  const RunStatus& status = model.status;
  std::vector<std::string> title = {"troupe", model.run, status.job, status.task,
                                    model.has_status ? status.state : "joining"};
  if (!status.reason.empty()) title.push_back("(" + status.reason + ")");
  title.erase(std::remove(title.begin(), title.end(), ""), title.end());
  lines.push_back(
      {joined(title), status.state == "failed" ? LineStyle::kError : LineStyle::kTitle});

  std::vector<std::string> progress = {"elapsed " + format_duration(status.elapsed),
                                       "ETA " + format_duration(status.eta)};
  std::string steps = "actor steps " + format_number(static_cast<double>(model.actor_steps));
  if (status.target_actor_steps > 0) {
    const auto target = static_cast<double>(status.target_actor_steps);
    steps += "/" + format_number(target) + " (" +
             format_share(static_cast<double>(model.actor_steps) / target) + ")";
  }
  progress.push_back(steps);
  progress.push_back("updates " + format_number(static_cast<double>(model.learner_updates)));
  lines.push_back({joined(progress)});
}

// What an evaluator of a classifier last said; nullopt in other jobs, and before the first
// evaluation.
std::optional<Metrics> classifier_metrics(const WatchModel& model) {
  for (const auto& [node, metrics] : model.metrics)
    if (metrics.contains("top1") && metrics.contains("top5") && metrics.contains("cross_entropy"))
      return metrics;
  return std::nullopt;
}

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f %%", 100 * share);
  return text.data();
}

void add_figures(const WatchModel& model, Lines& lines) {
  const RunStatus& status = model.status;
  if (const auto found = classifier_metrics(model)) {
    lines.push_back({joined({"accuracy: top-1 " + percent(found->at("top1")) + " at update " +
                                 format_number(static_cast<double>(status.evaluation_steps)),
                             "top-5 " + percent(found->at("top5")),
                             "loss " + format_number(found->at("cross_entropy"))})});
  } else {
    lines.push_back(
        {joined({"return: evaluation " + format_number(status.evaluation_return) + " at " +
                     format_number(static_cast<double>(status.evaluation_steps)),
                 "training " + format_number(status.recent_return),
                 "episodes " + format_number(static_cast<double>(status.episodes))})});
  }
  lines.push_back({joined({format_number(status.steps_per_second) + " steps/s",
                           format_number(status.updates_per_second) + " updates/s",
                           "SPI " + format_number(status.samples_per_insert) + "/" +
                               format_number(status.samples_per_insert_configured),
                           "policy lag " + format_number(status.policy_lag)})});
  if (!status.losses.empty()) lines.push_back({list_metrics("losses:", status.losses)});
  const std::string waits = describe_waits(status.waits);
  if (!waits.empty()) lines.push_back({"waits: " + waits});
  if (!status.counts.empty()) {
    lines.push_back({list_metrics("counted:", status.counts), LineStyle::kDim});
  }
}

Lines notices(const WatchModel& model) {
  Lines lines;
  if (model.silent_for >= kNoticeablySilent && !is_final(model.status)) {
    lines.push_back({"no message for " + format_duration(model.silent_for), LineStyle::kError});
  }
  if (model.lost + model.malformed > 0) {
    lines.push_back({"messages missed here: " + std::to_string(model.lost) +
                         ", not understood: " + std::to_string(model.malformed),
                     LineStyle::kWarning});
  }
  return lines;
}

// The return curve: evaluations, or training episodes before there are two of them.
Lines curve(const WatchModel& model, std::size_t columns, std::size_t rows, bool unicode) {
  Points points;
  const bool evaluated = model.evaluations.size() >= 2;
  if (evaluated) {
    for (const auto& [steps, value] : model.evaluations) {
      points.emplace_back(static_cast<double>(steps), value);
    }
  } else {
    for (const auto& [steps, value] : model.episodes) {
      points.emplace_back(static_cast<double>(steps), value);
    }
  }
  if (points.size() < 2 || rows < 3 || columns < 2 * kScaleColumns) return {};
  double low = INFINITY, high = -INFINITY;
  for (const auto& [x, y] : points) {
    if (!std::isfinite(y)) continue;
    low = std::min(low, y);
    high = std::max(high, y);
  }
  Lines lines = {{classifier_metrics(model) ? "accuracy over updates"
                  : evaluated               ? "return of evaluations over actor steps"
                                            : "return of training episodes over actor steps",
                  LineStyle::kDim}};
  const auto dots = plot(points, columns - kScaleColumns, rows - 1, unicode);
  for (std::size_t i = 0; i < dots.size(); ++i) {
    const std::string scale = i == 0                 ? format_number(high)
                              : i + 1 == dots.size() ? format_number(low)
                                                     : "";
    lines.push_back({pad(scale, kScaleColumns - 2) + "| " + dots[i]});
  }
  return lines;
}

Lines node_table(const RunStatus& status, std::size_t rows) {
  Lines lines;
  if (status.nodes.empty() || rows < 2) return lines;
  lines.push_back({pad("node", 16) + " " + pad("role", 18) + " " + pad("pid", 8) + " " +
                       pad("state", 9) + " " + pad("rate/s", 8) + " waiting on",
                   LineStyle::kDim});
  for (const NodeStatus& node : status.nodes) {
    if (lines.size() + 1 == rows && status.nodes.size() > rows - 1) {
      const std::size_t hidden = status.nodes.size() - (rows - 2);
      lines.push_back({"and " + std::to_string(hidden) + " more", LineStyle::kDim});
      break;
    }
    const bool is_well = node.state == "running" || node.state == "starting";
    lines.push_back({pad(node.node, 16) + " " + pad(node.role, 18) + " " +
                         pad(node.pid > 0 ? std::to_string(node.pid) : "-", 8) + " " +
                         pad(node.state, 9) + " " + pad(format_number(node.rate), 8) + " " +
                         node.waiting_on,
                     is_well ? LineStyle::kPlain : LineStyle::kWarning});
  }
  return lines;
}

Lines last_events(const WatchModel& model, std::size_t rows) {
  Lines lines;
  const std::size_t shown = std::min(rows, model.events.size());
  for (std::size_t i = model.events.size() - shown; i < model.events.size(); ++i) {
    const auto& [time, node, event] = model.events[i];
    const LineStyle style = event.severity == "error"     ? LineStyle::kError
                            : event.severity == "warning" ? LineStyle::kWarning
                                                          : LineStyle::kPlain;
    lines.push_back({local_time(time) + " " + node + ": " + event.text, style});
  }
  return lines;
}

void append(Lines& lines, Lines more) {
  for (StyledLine& line : more) lines.push_back(std::move(line));
}

}  // namespace

void WatchModel::apply(const Snapshot& snapshot) {
  run = snapshot.run;
  metrics.clear();
  episodes.clear();
  events.clear();
  evaluations.clear();
  for (const auto* messages :
       {&snapshot.metrics, &snapshot.events, &snapshot.episodes, &snapshot.evaluations}) {
    for (const Message& message : *messages) apply(message);
  }
  if (snapshot.status) apply(*snapshot.status);
}

void WatchModel::apply(const Message& message) {
  run = message.run;
  silent_for = 0;
  // An evaluation speaks of an older policy; the others of the present.
  if (message.kind() != Kind::kEvaluations) {
    actor_steps = std::max(actor_steps, message.actor_steps);
    learner_updates = message.learner_updates;
  }
  switch (message.kind()) {
    case Kind::kMetrics:
      metrics[message.node] = std::get<Metrics>(message.payload);
      break;
    case Kind::kEvents:
      events.push_back({message.time, message.node, std::get<Event>(message.payload)});
      if (events.size() > kMostEvents) events.pop_front();
      break;
    case Kind::kEpisodes:
      episodes.emplace_back(message.actor_steps, std::get<Episode>(message.payload).episode_return);
      if (episodes.size() > kMostEpisodes) episodes.pop_front();
      break;
    case Kind::kEvaluations:
      evaluations[message.actor_steps] = mean(std::get<Evaluation>(message.payload).returns);
      if (evaluations.size() > kMostEvaluations) evaluations.erase(evaluations.begin());
      break;
    case Kind::kStatus:
      status = std::get<RunStatus>(message.payload);
      has_status = true;
      break;
  }
}

std::vector<StyledLine> render(const WatchModel& model, std::size_t columns, std::size_t rows,
                               bool unicode) {
  Lines lines;
  add_header(model, lines);
  append(lines, notices(model));
  add_figures(model, lines);
  const std::size_t left = rows > lines.size() ? rows - lines.size() : 0;
  const Lines nodes = node_table(model.status, std::min(left / 2, model.status.nodes.size() + 1));
  const Lines events = last_events(model, left / 5);
  const std::size_t plot_rows = left - nodes.size() - events.size();
  append(lines, curve(model, columns, plot_rows, unicode));
  append(lines, nodes);
  append(lines, events);
  if (lines.size() > rows) lines.resize(rows);
  for (StyledLine& line : lines) line.text = clip(line.text, columns);
  return lines;
}

}  // namespace troupe::actors::telemetry
