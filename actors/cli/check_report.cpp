// The report's sections, in the order in which they are read.
#include "actors/cli/check_report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "actors/config/checks.hpp"
#include "actors/config/memory.hpp"
#include "actors/config/printer.hpp"
#include "actors/config/scalars.hpp"
#include "actors/roles/topology.hpp"

namespace troupe::actors::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string counted(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string mebibytes(double bytes) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%10.1f MiB", bytes / 1048576.0);
  return text.data();
}

// The action's bounds, shortened to one interval where all components share it.
std::string action_text(const ActionSpec& action) {
  if (action.discrete) return counted(action.choices, "choice");
  std::string text = counted(action.elements(), "component");
  const bool uniform = !action.low.empty() &&
                       std::equal(action.low.begin() + 1, action.low.end(), action.low.begin()) &&
                       std::equal(action.high.begin() + 1, action.high.end(), action.high.begin());
  if (uniform) text += " in [" + text_of(action.low[0]) + ", " + text_of(action.high[0]) + "]";
  return text;
}

Json environment_section(const EnvSpec& spec) {
  Json columns = Json::array();
  for (const Column& column : spec.observations) {
    columns.push_back(
        {{"name", column.name}, {"type", name_of(column.dtype)}, {"shape", column.shape}});
  }
  return {{"name", spec.name},
          {"observation_size", spec.observation_size()},
          {"observations", columns},
          {"action", action_text(spec.action)},
          {"episode_steps", spec.episode_steps},
          {"physics_steps", spec.physics_steps}};
}

std::string duty_of(const NodePlan& node, const RunOptions& options) {
  if (node.role == "environment") return counted(options.actors.environments, "environment");
  if (node.role == "data") {
    return counted(options.data.threads, "thread") + ", " +
           counted(options.actors.credit, "lease") + " of " +
           counted(options.data.lease, "picture");
  }
  if (node.role == "shard") return "replay shard " + std::to_string(node.index);
  if (node.role == "evaluator" && learns_from_pictures(options)) {
    return options.evaluation.every == 0
               ? "the evaluation set, at the end"
               : "the evaluation set, every " + counted(options.evaluation.every, "update");
  }
  if (node.role == "evaluator") {
    return counted(options.evaluation.episodes, "episode") + " every " +
           counted(options.evaluation.every, "actor step");
  }
  if (node.role == "parameter_server")
    return "server " + std::to_string(node.index) + " of " +
           counted(parameter_servers(options), "parameter server") + ", staleness at most " +
           std::to_string(options.learners.staleness);
  std::string duty = counted(options.learners.learner.replicas, "replica");
  if (is_asynchronous(options))
    duty += ", group " + std::to_string(group_of_learner(options, node.index)) + " of " +
            std::to_string(sync_groups(options));
  if (const std::int64_t in_sync = options.learners.count / sync_groups(options); in_sync > 1) {
    const bool pictures = learns_from_pictures(options);
    const std::int64_t batch =
        pictures ? pictures_per_update(options) : options.learners.learner.d4pg.batch;
    duty += ", " + std::to_string(batch / in_sync) + (pictures ? " pictures" : " items") +
            " of each batch of " + std::to_string(batch);
  }
  if (!shards_apart(options) && !learns_from_pictures(options)) {
    duty += ", " + counted(options.replay.shards, "replay shard");
  }
  return duty;
}

Json nodes_section(const RunOptions& options) {
  Json nodes = Json::array();
  nodes.push_back({{"name", "coordinator"}, {"role", "coordinator"}, {"duty", "telemetry hub"}});
  for (const NodePlan& node : plan_topology(options)) {
    nodes.push_back({{"name", node.name}, {"role", node.role}, {"duty", duty_of(node, options)}});
  }
  return nodes;
}

Json ports_section(const RunOptions& options) {
  const bool alone = options.processes == "0";
  const std::string any_port = "tcp://127.0.0.1:* (any free port)";
  const std::string blobs = options.transport == "tcp" ? any_port : "ipc:// (sockets, no port)";
  const std::string none = "none: all nodes share one process";
  return {{"control", alone ? none : any_port},
          {learns_from_pictures(options) ? "pictures and parameters" : "experience and parameters",
           alone ? none : blobs},
          {"telemetry", options.telemetry.endpoint}};
}

Json limiter_section(const RunOptions& options) {
  const LimiterFigures figures = limiter_figures(options);
  const double spi = options.replay.samples_per_insert;
  Json section{{"samples_per_insert", spi}, {"flush_steps", figures.flush_steps}};
  if (spi > 0) {
    section["error_buffer"] = figures.error_buffer;
    section["band"] = figures.band;
    section["needed"] = figures.needed;
  }
  return section;
}

Json memory_section(const std::vector<MemoryTerm>& list) {
  Json terms = Json::array();
  double total = 0;
  for (const MemoryTerm& term : list) {
    terms.push_back({{"name", term.name}, {"formula", term.formula}, {"bytes", term.bytes}});
    total += term.bytes;
  }
  return {{"terms", terms}, {"total", total}};
}

Json data_section(const RunOptions& options, const PictureSets& sets) {
  const learners::PictureSpec spec = picture_spec(options, *sets.training);
  return {{"kind", options.data.set.kind},
          {"training", sets.training->size()},
          {"evaluation", sets.evaluation->size()},
          {"classes", spec.classes},
          {"side", spec.side},
          {"channels", spec.channels},
          {"batch", pictures_per_update(options)},
          {"updates_per_epoch",
           learners::updates_of(1, sets.training->size(), pictures_per_update(options))},
          {"updates", options.stop.updates}};
}

std::string data_text(const Json& data) {
  const auto number = [&](const char* key) {
    return std::to_string(data[key].get<std::int64_t>());
  };
  std::string text = "data\n  " + data["kind"].get<std::string>() + ": " + number("training") +
                     " pictures to learn from, " + number("evaluation") + " to be judged by, of " +
                     number("classes") + " classes" + ", as " + number("side") + " x " +
                     number("side") + " x " + number("channels") + "\n  " +
                     counted(data["updates_per_epoch"].get<std::int64_t>(), "update") +
                     " an epoch of " + number("batch") + " pictures each";
  if (data["updates"] != 0) text += ", " + number("updates") + " in all";
  return text + "\n";
}

std::string environment_text(const Json& environment) {
  const auto episode_steps = environment["episode_steps"].get<std::int64_t>();
  return "environment\n  " + environment["name"].get<std::string>() + ": " +
         counted(environment["observation_size"].get<std::int64_t>(), "number") +
         " observed, action " + environment["action"].get<std::string>() + ", " +
         (episode_steps == 0 ? "episodes without limit"
                             : "episodes of " + counted(episode_steps, "step")) +
         "\n";
}

Json configuration_section(const std::string& file, const LoadedConfig& config) {
  Json origins = Json::object();
  for (const auto& [key, origin] : config.origins) origins[key] = origin.text();
  return {{"file", file}, {"hash", config.hash}, {"origins", origins}};
}

std::string limiter_text(const Json& limiter) {
  std::string text = "limiter\n";
  if (limiter.contains("band")) {
    text += "  band 2 x " + text_of(limiter["error_buffer"].get<double>()) + " / " +
            text_of(limiter["samples_per_insert"].get<double>()) + " = " +
            text_of(limiter["band"].get<double>()) + " items, " +
            text_of(limiter["needed"].get<double>()) + " needed\n";
  } else {
    text += "  no ratio: only min_size counts\n";
  }
  return text + "  segments of at most " +
         counted(limiter["flush_steps"].get<std::int64_t>(), "step") + "\n";
}

}  // namespace

Json check_report(const std::string& file, const LoadedConfig& config, const EnvSpec& spec) {
  return {{"configuration", configuration_section(file, config)},
          {"environment", environment_section(spec)},
          {"processes", config.options.processes},
          {"nodes", nodes_section(config.options)},
          {"ports", ports_section(config.options)},
          {"limiter", limiter_section(config.options)},
          {"memory", memory_section(memory_terms(config.options, spec))}};
}

Json check_report(const std::string& file, const LoadedConfig& config, const PictureSets& sets) {
  const RunOptions options = with_epochs_as_updates(config.options, sets.training->size());
  const learners::PictureSpec spec = picture_spec(options, *sets.training);
  return {{"configuration", configuration_section(file, config)},
          {"data", data_section(options, sets)},
          {"processes", options.processes},
          {"nodes", nodes_section(options)},
          {"ports", ports_section(options)},
          {"memory", memory_section(memory_terms(options, spec))}};
}

std::string check_text(const Json& report) {
  const Json& configuration = report["configuration"];
  std::string text = configuration["file"].get<std::string>() + " is valid (hash " +
                     configuration["hash"].get<std::string>() + ", " +
                     counted(static_cast<std::int64_t>(configuration["origins"].size()), "key") +
                     " set)\n\n";
  text +=
      report.contains("data") ? data_text(report["data"]) : environment_text(report["environment"]);
  text += "\n" + counted(static_cast<std::int64_t>(report["nodes"].size()), "node") +
          (report["processes"] == "0" ? " in one process\n" : ", a process each\n");
  for (const Json& node : report["nodes"]) {
    std::array<char, 256> line{};
    std::snprintf(line.data(), line.size(), "  %-14s %-12s %s\n",
                  node["name"].get<std::string>().c_str(), node["role"].get<std::string>().c_str(),
                  node["duty"].get<std::string>().c_str());
    text += line.data();
  }
  text += "\nports\n";
  for (const auto& [name, port] : report["ports"].items()) {
    text += "  " + name + ": " + port.get<std::string>() + "\n";
  }
  if (report.contains("limiter")) text += "\n" + limiter_text(report["limiter"]);
  text += "\nmemory of the data, at most\n";
  for (const Json& term : report["memory"]["terms"]) {
    text += mebibytes(term["bytes"].get<double>()) + "  " + term["name"].get<std::string>() + ": " +
            term["formula"].get<std::string>() + "\n";
  }
  return text + mebibytes(report["memory"]["total"].get<double>()) + "  in all\n";
}

}  // namespace troupe::actors::cli
