// Everything a run can be told, each option described once. Plain values; read from YAML by
// actors/config/reader.hpp and passed by const reference from then on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/config/cluster_options.hpp"
#include "envs/spec/options.hpp"
#include "learners/data/picture_options.hpp"
#include "learners/options.hpp"

namespace troupe::actors {

struct EnvironmentOptions {
  std::string name;
  std::int64_t time_limit = 0;  // control steps; 0: the task's own
};

template <class Visitor>
void describe(Visitor& visitor, EnvironmentOptions& options) {
  visitor.field("name", options.name, "Task, as listed by `troupe help environments`.");
  visitor.field("time_limit", options.time_limit, at_least(0),
                "Control steps after which an episode is truncated; 0 keeps the task's own limit.");
}

struct ActorOptions {
  std::int64_t count = 2;
  std::int64_t environments = 1;
  std::int64_t min = 1, max = 64;
  std::string scaling = "manual";
  std::int64_t credit = 2;
};

template <class Visitor>
void describe(Visitor& visitor, ActorOptions& options) {
  visitor.field("count", options.count, between(0, 4096),
                "Environment actors, or data actors of a job on pictures; 0 trains from "
                "replay.prefill alone, and updates then count "
                "wherever actor steps would.");
  visitor.field("environments", options.environments, between(1, 4096),
                "Environments stepped by each environment actor.");
  visitor.field("min", options.min, at_least(1), "Fewest actors the run goes on with.");
  visitor.field("max", options.max, at_least(1), "Most actors the run may be scaled to.");
  visitor.choice("scaling", options.scaling, {"manual", "auto"},
                 "auto: from `count` on, more actors while the learner waits for samples and fewer "
                 "while actors wait for leave to insert, between min and max; a growth that brings "
                 "no more steps is taken back. manual: `troupe scale` alone.");
  visitor.field("credit", options.credit, between(1, 64),
                "Segments an actor may have unacknowledged before it stops stepping, or leases a "
                "data actor works on at once.");
}

struct ReplayDiskOptions {
  std::string folder;
  std::int64_t bytes = 0;
};

template <class Visitor>
void describe(Visitor& visitor, ReplayDiskOptions& options) {
  visitor.field("folder", options.folder,
                "Where the shards' hosts keep steps on disk instead of in memory; empty: nowhere.");
  visitor.field(
      "bytes", options.bytes, between(0, 1e15),
      "Set aside there for the configured shards together, when they start; a shard that is "
      "added sets aside as much again as each of them. The oldest items are removed first.");
}

struct ReplayOptions {
  std::int64_t shards = 1;
  std::string placement = "auto";
  std::int64_t capacity = 1000000;
  std::int64_t min_size = 1000;
  double samples_per_insert = 32;  // 0: no ratio, only min_size
  std::optional<double> error_buffer;
  std::string selector = "uniform";
  double priority_exponent = 0.6;
  double importance_exponent = 0.4;
  std::string weight_scale = "batch";
  std::string prefill;                   // a file of episodes; empty: none
  std::vector<std::string> compression;  // "column=none|lz4|zstd"
  ReplayDiskOptions disk;
};

template <class Visitor>
void describe(Visitor& visitor, ReplayOptions& options) {
  visitor.field("shards", options.shards, between(1, 256), "Replay shards.");
  visitor.choice("placement", options.placement, {"auto", "learner", "own"},
                 "Shards in the learner's process, or each in a process of its own; auto: with the "
                 "learner if there is one, of their own if there are several.");
  visitor.field(
      "capacity", options.capacity, between(1, 1e12),
      "Items kept over the configured shards, the same in each; a shard that is added keeps "
      "as many again. The oldest are removed first.");
  visitor.field("min_size", options.min_size, at_least(1),
                "Items held by all shards together before the first sample.");
  visitor.field("samples_per_insert", options.samples_per_insert, at_least(0),
                "How often an item is sampled on average, over all shards; 0 turns the ratio off.");
  visitor.field("error_buffer", options.error_buffer, above(0),
                "How far samples may run from samples_per_insert x items, in samples; "
                "null: 0.1 x min_size x samples_per_insert.");
  visitor.choice("selector", options.selector, {"uniform", "prioritised"},
                 "How items are drawn: all alike, or in proportion to a power of their last loss "
                 "(d4pg: the cross-entropy of the item's value distribution, before weighting).");
  visitor.field("priority_exponent", options.priority_exponent, between(0, 8),
                "The power of the priorities that prioritised draws go by; 0 draws uniformly.");
  visitor.field(
      "importance_exponent", options.importance_exponent, between(0, 1),
      "How far importance weights undo the bias of prioritised draws; 1: wholly, 0: not.");
  visitor.choice("weight_scale", options.weight_scale, {"batch", "table"},
                 "Importance weights are over the largest one of the batch, or of all items held; "
                 "the latter compare between batches but are smaller.");
  visitor.field("prefill", options.prefill,
                "Episodes that a new run's tables begin with, of `troupe replay export`, Minari or "
                "D4RL; they meet min_size and owe no samples. Empty: none.");
  visitor.field(
      "compression", options.compression,
      "How columns are kept, as column=none, column=lz4 or column=zstd; u8 columns of 1 "
      "KiB a row or more are kept as lz4 unless named here; zstd is smaller, and slower to "
      "read.");
  visitor.group("disk", options.disk, "For replays that are larger than memory.");
}

// How the learners are in step, and what the learning library describes itself.
struct LearnersOptions {
  std::int64_t count = 1;
  std::int64_t max = 0;  // 0: count
  std::string sync = "all_reduce";
  // Of the asynchronous regimes.
  std::int64_t sync_groups = 0;
  std::int64_t parameter_servers = 0;  // 0: one, if there are any
  std::int64_t staleness = 16;
  Duration snapshot_every{5000};
  // .d4pg, .resnet and .sngan are filled from sections of those names.
  learners::LearnerOptions learner;
};

template <class Visitor>
void describe(Visitor& visitor, LearnersOptions& options) {
  visitor.field("count", options.count, between(1, 64),
                "Learner processes; the run goes on while one is there.");
  visitor.field(
      "max", options.max, between(0, 64),
      "Most learners the run may be scaled to, where all are in sync; 0: count. More than "
      "one gives shards processes of their own.");
  visitor.choice("sync", options.sync, {"all_reduce", "groups", "parameter_servers"},
                 "All learners apply every update together; or each sends updates of its own to "
                 "parameter servers; or groups of them do, in sync inside.");
  visitor.field("sync_groups", options.sync_groups, between(0, 64),
                "With sync: groups, how many groups the learners are divided over.");
  visitor.field("parameter_servers", options.parameter_servers, between(0, 64),
                "Processes that hold parameters and optimizer state, divided by bytes, where "
                "learners are not all in sync; 0: one.");
  visitor.field("staleness", options.staleness, at_least(0),
                "Updates by others since a learner took parameters, above which a parameter "
                "server refuses its update.");
  visitor.field("snapshot_every", options.snapshot_every, between(100, 3600000),
                "Time between snapshots of a parameter server; one that dies goes back to its "
                "last.");
  describe(visitor, options.learner);
}

struct EvaluationOptions {
  std::int64_t every = 10000;
  std::int64_t episodes = 10;
  std::int64_t epochs = 1;
  Duration timeout{600000};
};

template <class Visitor>
void describe(Visitor& visitor, EvaluationOptions& options) {
  visitor.field("every", options.every, at_least(0),
                "Actor steps between evaluations, updates of jobs on pictures; 0 evaluates only at "
                "the end.");
  visitor.field("episodes", options.episodes, between(1, 100000), "Episodes of each evaluation.");
  visitor.field("epochs", options.epochs, at_least(0),
                "Of jobs on pictures: epochs between evaluations on the whole evaluation set, "
                "instead of `every`; 0: that counts.");
  visitor.field("timeout", options.timeout, at_least(1000),
                "An evaluation that takes longer is given up.");
}

struct CheckpointOptions {
  Duration every{60000};
  std::int64_t keep = 3;
  bool replay = true;
};

template <class Visitor>
void describe(Visitor& visitor, CheckpointOptions& options) {
  visitor.field("every", options.every, at_least(0),
                "Time between checkpoints; 0s saves only at the end.");
  visitor.field("keep", options.keep, between(1, 1000), "Complete checkpoints kept.");
  visitor.field("replay", options.replay, "Save the replay's content too.");
}

struct TelemetryOptions {
  std::string endpoint = "tcp://127.0.0.1:*";
  Duration every{1000};
};

template <class Visitor>
void describe(Visitor& visitor, TelemetryOptions& options) {
  visitor.field("endpoint", options.endpoint,
                "ZeroMQ address of the metrics; * takes any free port (printed at the start).");
  visitor.field("every", options.every, between(10, 3600000),
                "Time between metrics of each actor.");
}

struct StopOptions {
  std::int64_t actor_steps = 0;
  std::int64_t updates = 0;
  std::int64_t epochs = 0;
  std::optional<double> mean_return, accuracy;
  Duration wall_time{0};
  Duration grace{8000};
};

template <class Visitor>
void describe(Visitor& visitor, StopOptions& options) {
  visitor.field("actor_steps", options.actor_steps, at_least(0),
                "Stop after so many control steps; 0: never.");
  visitor.field("updates", options.updates, at_least(0), "Stop after so many updates; 0: never.");
  visitor.field("epochs", options.epochs, at_least(0),
                "Stop after so many passes over the training set, of jobs on pictures; 0: never.");
  visitor.field("accuracy", options.accuracy, between(0, 1),
                "Stop when an evaluation's top-1 accuracy reaches this, of jobs on pictures; null: "
                "never.");
  visitor.field("return", options.mean_return, anything(),
                "Stop when an evaluation's mean return reaches this; null: never.");
  visitor.field("wall_time", options.wall_time, at_least(0),
                "Stop after this time, earlier sessions of the run included; 0s: never.");
  visitor.field("grace", options.grace, between(500, 600000),
                "Time that actors get for their last checkpoint before they are killed.");
}

struct SupervisionOptions {
  std::int64_t restarts = 10;
  Duration window{600000};
  Duration silent_after{8000};
  Duration step_timeout{30000};
  Duration standstill_after{15000};
};

template <class Visitor>
void describe(Visitor& visitor, SupervisionOptions& options) {
  visitor.field("restarts", options.restarts, at_least(0),
                "Restarts of one node within the window before the run gives up.");
  visitor.field("window", options.window, at_least(1000), "The window of `restarts`.");
  visitor.field("silent_after", options.silent_after, between(2000, 3600000),
                "A node that answers no ping for this long is killed and replaced.");
  visitor.field("step_timeout", options.step_timeout, between(1000, 3600000),
                "An environment step that lasts longer counts as hung.");
  visitor.field("standstill_after", options.standstill_after, between(1000, 3600000),
                "Without an update for this long, the run says what it waits for.");
}

struct RunOptions {
  std::string job = "d4pg";
  std::int64_t seed = 1;
  std::string processes = "auto";  // "auto" or "0"
  std::string transport = "ipc";   // of data channels between local processes
  bool deterministic = false;
  EnvironmentOptions environment;
  learners::data::PictureOptions data;
  ActorOptions actors;
  ReplayOptions replay;
  LearnersOptions learners;
  EvaluationOptions evaluation;
  CheckpointOptions checkpoint;
  TelemetryOptions telemetry;
  StopOptions stop;
  SupervisionOptions supervision;
  ClusterOptions cluster;
};

template <class Visitor>
void describe(Visitor& visitor, RunOptions& options) {
  visitor.choice("job", options.job, {"d4pg", "resnet", "sngan", "null"},
                 "What is trained: a policy, a classifier or a generator of pictures; `null` "
                 "samples and counts "
                 "but learns nothing.");
  visitor.field("seed", options.seed, between(0, 9007199254740992.0),
                "Every random stream of the run follows from it; 0 is a seed like any.");
  visitor.choice("processes", options.processes, {"auto", "0"},
                 "`auto`: one process per actor; 0: everything in one process.");
  visitor.choice("transport", options.transport, {"ipc", "tcp"},
                 "How blobs travel between processes of this host.");
  visitor.field("deterministic", options.deterministic,
                "One fixed schedule in one process: the same seed gives the same bits.");
  visitor.group("environment", options.environment, "What the world is, of d4pg and null.");
  visitor.group("data", options.data, "The pictures, of resnet and sngan.");
  visitor.group("actors", options.actors, "The environment actors or data actors.");
  visitor.group("replay", options.replay, "What is remembered.");
  visitor.group("learners", options.learners, "How learning is spread out.");
  visitor.group("d4pg", options.learners.learner.d4pg, "Hyper-parameters of D4PG.");
  visitor.group("resnet", options.learners.learner.resnet, "Network and training of a classifier.");
  visitor.group("sngan", options.learners.learner.sngan,
                "Networks and training of a generator of pictures.");
  visitor.group("evaluation", options.evaluation, "How progress is measured.");
  visitor.group("checkpoint", options.checkpoint, "What is saved, and when.");
  visitor.group("telemetry", options.telemetry, "How the run can be watched.");
  visitor.group("stop", options.stop, "When the run is finished; the first condition met counts.");
  visitor.group("supervision", options.supervision, "What happens when parts die or freeze.");
  visitor.group("cluster", options.cluster, "How other hosts reach the run.");
}

}  // namespace troupe::actors
