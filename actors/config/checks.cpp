// Each check is one function that appends a line; check_options is their list.
#include "actors/config/checks.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "actors/config/cluster_checks.hpp"
#include "actors/config/resume.hpp"
#include "actors/config/scalars.hpp"
#include "replay/limiter_check.hpp"

namespace troupe::actors {
namespace {

using Lines = std::vector<std::string>;

std::string text(std::int64_t value) { return std::to_string(value); }
void check_environment(const RunOptions& options, Lines& lines) {
  if (options.environment.name.empty()) {
    lines.push_back(
        "environment.name is not set; write environment: {name: TASK} with a task of "
        "`troupe help environments`");
  }
}

void check_actors(const RunOptions& options, Lines& lines) {
  const ActorOptions& actors = options.actors;
  if (is_offline(options)) {
    if (options.replay.prefill.empty()) {
      lines.push_back(
          "actors.count is 0, but replay.prefill names no file; without either there is nothing to "
          "learn from");
    }
    return;
  }
  if (actors.min > actors.count) {
    lines.push_back("actors.min " + text(actors.min) + " is more than actors.count " +
                    text(actors.count) + "; lower actors.min or raise actors.count");
  }
  if (actors.count > actors.max) {
    lines.push_back("actors.count " + text(actors.count) + " is more than actors.max " +
                    text(actors.max) + "; raise actors.max");
  }
}

replay::LimiterPlan limiter_plan(const RunOptions& options) {
  const learners::LearnerOptions& learner = options.learners.learner;
  return {.capacity = options.replay.capacity,
          .min_size = options.replay.min_size,
          .samples_per_insert = samples_per_insert(options),
          .error_buffer = options.replay.error_buffer,
          .shards = options.replay.shards,
          .environment_actors = std::max<std::int64_t>(1, options.actors.count),
          .credit = options.actors.credit,
          .batch = learner.d4pg.batch,
          // Each group draws batches of its own ahead.
          .prefetch = sync_groups(options) * learner.prefetch,
          .n_step = learner.d4pg.n_step};
}

void check_replay(const RunOptions& options, Lines& lines) {
  if (const auto packing = column_compression(options.replay); !packing)
    lines.push_back(packing.error().message);
  const ReplayDiskOptions& disk = options.replay.disk;
  if (!disk.folder.empty() && disk.bytes < options.replay.shards)
    lines.push_back("replay.disk.folder is " + disk.folder + ", but replay.disk.bytes is " +
                    text(disk.bytes) + ": nothing could be kept there");
  if (disk.folder.empty() && disk.bytes > 0)
    lines.push_back("replay.disk.bytes is " + text(disk.bytes) +
                    ", but replay.disk.folder names no folder");
  const auto limits = replay::check_limiter(limiter_plan(options));
  if (!limits) lines.push_back("replay: " + limits.error().message);
}

void check_batch(const RunOptions& options, Lines& lines) {
  const LearnersOptions& learners = options.learners;
  const auto& d4pg = learners.learner.d4pg;
  const std::int64_t groups = sync_groups(options);
  const std::int64_t replicas =
      std::max<std::int64_t>(1, learners.count / groups) * learners.learner.replicas;
  if (d4pg.batch % replicas != 0) {
    lines.push_back("d4pg.batch " + text(d4pg.batch) + " does not divide by learners.count " +
                    (groups > 1 ? "/ " + text(groups) + " groups " : "") + "x " +
                    "learners.replicas = " + text(replicas) + "; the remainder is " +
                    text(d4pg.batch % replicas));
  }
}

// Arrays of both networks, which parameter servers share whole.
std::int64_t arrays_of(const learners::D4pgOptions& d4pg) {
  const auto layers = static_cast<std::int64_t>(d4pg.policy.size() + d4pg.critic.size() + 2);
  return 2 * layers + (d4pg.layer_norm ? 4 : 0);
}

void check_sync(const RunOptions& options, Lines& lines) {
  const LearnersOptions& learners = options.learners;
  const std::string sync = "learners.sync is " + learners.sync;
  if (learners.sync != "groups" && learners.sync_groups != 0)
    lines.push_back("learners.sync_groups is " + text(learners.sync_groups) + ", but " + sync +
                    (is_asynchronous(options) ? ", where each learner is a group of its own"
                                              : ", where all learners are in sync") +
                    "; write sync: groups or remove it");
  if (learners.sync == "groups" && learners.sync_groups == 0)
    lines.push_back(sync +
                    ", but learners.sync_groups does not say how many; write a divisor of "
                    "learners.count " +
                    text(learners.count));
  if (learners.sync == "groups" && learners.sync_groups > 0 &&
      learners.count % learners.sync_groups != 0)
    lines.push_back("learners.count " + text(learners.count) +
                    " does not divide by learners.sync_groups " + text(learners.sync_groups) +
                    "; the remainder is " + text(learners.count % learners.sync_groups));
  if (!is_asynchronous(options)) {
    if (learners.parameter_servers > 0)
      lines.push_back("learners.parameter_servers is " + text(learners.parameter_servers) +
                      ", but " + sync +
                      ": every learner applies every update itself; write sync: "
                      "parameter_servers or groups, or remove it");
    return;
  }
  if (options.job == "null")
    lines.push_back(sync + ", but the job null has no parameters to serve");
  if (learns_from_pictures(options))
    lines.push_back(sync + ", but the learners of job: " + options.job +
                    " train in sync only; write sync: all_reduce");
  if (const std::int64_t arrays = arrays_of(learners.learner.d4pg);
      parameter_servers(options) > arrays)
    lines.push_back("learners.parameter_servers " + text(parameter_servers(options)) +
                    " is more than the 2 x (" + text(std::ssize(learners.learner.d4pg.policy) + 1) +
                    " + " + text(std::ssize(learners.learner.d4pg.critic) + 1) + ") layers" +
                    (learners.learner.d4pg.layer_norm ? " + 4" : "") + " = " + text(arrays) +
                    " arrays of policy and critic, which are not cut");
  if (options.deterministic)
    lines.push_back(sync +
                    ", but deterministic: true has one schedule, and who is asynchronous "
                    "follows none; write sync: all_reduce");
  if (options.replay.placement == "learner")
    lines.push_back(sync +
                    ", but replay.placement is learner: learners that are not in sync draw "
                    "from shards of their own processes; write auto or own");
}

void check_learners(const LearnersOptions& learners, Lines& lines) {
  if (learners.learner.devices.empty()) {
    lines.push_back("learners.devices is empty; write [cpu]");
  }
  for (const std::string& device : learners.learner.devices) {
    if (device != "cpu") {
      lines.push_back("learners.devices names \"" + device + "\"; this build knows cpu");
    }
  }
}

// What holds only for one learner.
void check_several_learners(const RunOptions& options, Lines& lines) {
  const std::int64_t most = most_learners(options);
  const std::string count =
      (options.learners.count == most ? "learners.count is " : "learners.max is ") + text(most);
  if (options.learners.max > 0 && options.learners.max < options.learners.count)
    lines.push_back("learners.max is " + text(options.learners.max) +
                    ", fewer than learners.count = " + text(options.learners.count));
  if (options.learners.max > options.learners.count && is_asynchronous(options))
    lines.push_back(count + ", but learners.sync is " + options.learners.sync +
                    ", where their number stays; remove learners.max");
  if (most == 1) return;
  if (options.replay.placement == "learner" && !is_asynchronous(options)) {
    lines.push_back(count +
                    ", but replay.placement is learner: with one of them the replay would "
                    "die; write auto or own");
  }
  if (options.deterministic && !is_asynchronous(options)) {
    lines.push_back(count +
                    ", but deterministic: true is one process; write learners.count: 1 and "
                    "learners.replicas: " +
                    text(options.learners.count));
  }
  if (options.job == "null" && !is_asynchronous(options)) {
    lines.push_back(count + ", but the job null has nothing that could be in step");
  }
  if (is_prioritised(options) && options.replay.importance_exponent > 0 &&
      most > sync_groups(options) && options.replay.weight_scale == "batch") {
    lines.push_back(count +
                    ", and each sees its part of the batch, not the largest weight of all; "
                    "write replay.weight_scale: table");
  }
}

void check_d4pg(const learners::D4pgOptions& d4pg, Lines& lines) {
  if (d4pg.v_min >= d4pg.v_max) {
    lines.push_back("d4pg.v_min " + text_of(d4pg.v_min) + " must be less than d4pg.v_max " +
                    text_of(d4pg.v_max) + "; the critic's support would be empty");
  }
  if (d4pg.policy.empty()) lines.push_back("d4pg.policy is empty; give at least one width");
  if (d4pg.critic.empty()) lines.push_back("d4pg.critic is empty; give at least one width");
}

// Sections and keys that the job does not look at.
void check_unused(const RunOptions& options, Lines& lines) {
  std::vector<std::string> unused;
  if (learns_from_pictures(options))
    unused = {"environment.",        "replay.",          "d4pg.",
              "actors.environments", "stop.actor_steps", "stop.return",
              "evaluation.episodes", "checkpoint.replay"};
  else
    unused = {"data.", "stop.epochs", "evaluation.epochs"};
  if (options.job != "resnet") unused.insert(unused.end(), {"resnet.", "stop.accuracy"});
  if (options.job != "sngan") unused.push_back("sngan.");
  for (const Difference& difference : differences(RunOptions{}, options))
    if (std::any_of(unused.begin(), unused.end(),
                    [&](const std::string& key) { return difference.key.starts_with(key); }))
      lines.push_back(difference.key + " has no effect with job: " + options.job + "; remove it");
}

void check_network(const RunOptions& options, Lines& lines) {
  RunOptions ended = options;
  // A schedule without an end of its own ends with the run.
  if (learners::ScheduleOptions& schedule = schedule_of(ended);
      schedule.updates == 0 && (options.stop.epochs > 0 || options.stop.updates > 0))
    schedule.updates = std::max(schedule.warm_up, schedule.decay_from) + 1;
  const learners::LearnerOptions& learner = ended.learners.learner;
  const std::int64_t replicas = options.learners.count * learner.replicas;
  if (options.job == "sngan") {
    if (auto valid = check(learner.sngan, replicas, options.data.augment.size); !valid)
      lines.push_back("sngan." + valid.error().message);
    return;
  }
  const auto channels = static_cast<std::int64_t>(
      std::max({std::size_t{1}, learner.resnet.mean.size(), learner.resnet.deviation.size()}));
  if (auto valid = check(learner.resnet, replicas, channels); !valid)
    lines.push_back("resnet." + valid.error().message);
}

void check_pictures(const RunOptions& options, Lines& lines) {
  if (options.actors.count == 0)
    lines.push_back("actors.count is 0; without data actors nobody reads pictures");
  if (options.data.set.kind != "synthetic" && options.data.set.path.empty())
    lines.push_back("data.path is not set; it names the folder of the pictures");
  if (options.deterministic)
    lines.push_back("deterministic has no effect with job: " + options.job +
                    ", whose updates depend on seed and position alone, whatever its data actors "
                    "do; remove it");
  if (auto valid = learners::data::check(options.data.augment); !valid)
    lines.push_back("data.augment." + valid.error().message);
  check_network(options, lines);
}

bool is_port(std::string_view port) {
  if (port == "*") return true;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
  return error == std::errc() && end == port.data() + port.size() && value <= 65535 && value > 0;
}

void check_telemetry(const TelemetryOptions& telemetry, Lines& lines) {
  const std::string_view endpoint = telemetry.endpoint;
  if (endpoint.starts_with("ipc://") && endpoint.size() > 6) return;
  const std::size_t colon = endpoint.rfind(':');
  const bool tcp = endpoint.starts_with("tcp://") && colon > 6 && colon != std::string_view::npos &&
                   is_port(endpoint.substr(colon + 1));
  if (!tcp) {
    lines.push_back(
        "telemetry.endpoint is \"" + telemetry.endpoint +
        "\"; write tcp://ADDRESS:PORT with a port of 1 to 65535 or * for any free one, or "
        "ipc://PATH");
  }
}

}  // namespace

Result<replay::ColumnCompression> column_compression(const ReplayOptions& options) {
  replay::ColumnCompression result;
  for (const std::string& entry : options.compression) {
    const auto equals = entry.find('=');
    const auto compression = equals == std::string::npos
                                 ? std::nullopt
                                 : replay::compression_of(entry.substr(equals + 1));
    if (!compression || equals == 0)
      return fail(
          ErrorCode::kInvalidArgument,
          "replay.compression: '" + entry + "' is not column=none, column=lz4 or column=zstd");
    result[entry.substr(0, equals)] = *compression;
  }
  return result;
}

LimiterFigures limiter_figures(const RunOptions& options) {
  const replay::LimiterPlan plan = limiter_plan(options);
  const double spi = plan.samples_per_insert;
  LimiterFigures figures;
  figures.error_buffer = plan.error_buffer.value_or(0.1 * static_cast<double>(plan.min_size) * spi);
  figures.band = replay::band_items(figures.error_buffer, spi);
  figures.needed = static_cast<double>(plan.environment_actors);
  if (spi > 0) figures.needed += static_cast<double>(plan.prefetch * plan.batch) / spi;
  figures.flush_steps = replay::flush_steps(figures.band, plan.environment_actors, plan.credit);
  return figures;
}

std::int64_t most_updates(const RunOptions& options) {
  const std::int64_t updates = options.stop.updates;
  const std::int64_t steps = counts_updates(options) ? options.stop.actor_steps : 0;
  if (updates == 0 || steps == 0) return std::max(updates, steps);
  return std::min(updates, steps);
}

learners::ScheduleOptions& schedule_of(RunOptions& options) {
  learners::LearnerOptions& learner = options.learners.learner;
  return options.job == "sngan" ? learner.sngan.schedule : learner.resnet.schedule;
}

RunOptions with_epochs_as_updates(RunOptions options, std::int64_t pictures) {
  if (!learns_from_pictures(options)) return options;
  const auto updates = [&](std::int64_t epochs) {
    return learners::updates_of(epochs, pictures, pictures_per_update(options));
  };
  if (const std::int64_t last = updates(options.stop.epochs); last > 0)
    options.stop.updates = options.stop.updates == 0 ? last : std::min(options.stop.updates, last);
  if (options.evaluation.epochs > 0) options.evaluation.every = updates(options.evaluation.epochs);
  learners::ScheduleOptions& schedule = schedule_of(options);
  if (schedule.updates == 0) schedule.updates = options.stop.updates;
  return options;
}

Result<void> check_options(const RunOptions& options) {
  Lines lines;
  check_unused(options, lines);
  if (learns_from_pictures(options)) {
    check_pictures(options, lines);
  } else {
    check_environment(options, lines);
    check_replay(options, lines);
    check_batch(options, lines);
    check_d4pg(options.learners.learner.d4pg, lines);
  }
  check_actors(options, lines);
  check_learners(options.learners, lines);
  check_several_learners(options, lines);
  check_sync(options, lines);
  check_telemetry(options.telemetry, lines);
  check_cluster(options, lines);
  if (lines.empty()) return {};
  std::string message;
  for (const std::string& line : lines) message += (message.empty() ? "" : "\n") + line;
  return fail(ErrorCode::kInvalidArgument, message);
}

}  // namespace troupe::actors
