// What no single option can check about itself: combinations that cannot run are refused before
// anything starts, with the arithmetic. Pure functions, any thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "actors/config/run_options.hpp"
#include "envs/spec/result.hpp"
#include "replay/compression.hpp"

namespace troupe::actors {

// The rate limiter's arithmetic (replay/limiter_check.hpp), over all shards. SPI is
// replay.samples_per_insert.
struct LimiterFigures {
  double error_buffer = 0;       // samples; the default is 0.1 x min_size x SPI
  double band = 0;               // items: 2 x error_buffer / SPI; infinite for SPI 0
  double needed = 0;             // items: environment actors + prefetch x batch / SPI
  std::int64_t flush_steps = 1;  // steps of one segment
};
LimiterFigures limiter_figures(const RunOptions& options);

// Whether data actors feed the learner with labelled pictures, instead of environment actors and a
// replay.
inline bool learns_from_pictures(const RunOptions& options) {
  return options.job == "resnet" || options.job == "sngan";
}
// Pictures that an update of such a job learns from.
inline std::int64_t pictures_per_update(const RunOptions& options) {
  const learners::LearnerOptions& learner = options.learners.learner;
  return options.job == "sngan" ? learner.sngan.pictures() : learner.resnet.batch;
}
// The learning rates of such a job.
learners::ScheduleOptions& schedule_of(RunOptions& options);
// Whether the run has no environment actors and trains from replay.prefill alone.
inline bool is_offline(const RunOptions& options) {
  return options.actors.count == 0 && !learns_from_pictures(options);
}
// Whether updates count wherever actor steps would: nobody makes any.
inline bool counts_updates(const RunOptions& options) {
  return is_offline(options) || learns_from_pictures(options);
}
// replay.samples_per_insert, or 0 of an offline run: without inserts there is no ratio to keep.
inline double samples_per_insert(const RunOptions& options) {
  return is_offline(options) ? 0 : options.replay.samples_per_insert;
}

// Whether learners send updates to parameter servers, instead of applying all together.
inline bool is_asynchronous(const RunOptions& options) {
  return options.learners.sync != "all_reduce";
}
// The most learners that a run may have.
inline std::int64_t most_learners(const RunOptions& options) {
  return std::max(options.learners.count, options.learners.max);
}
// Whether learners are told by the coordinator with whom they train.
inline bool learns_in_groups(const RunOptions& options) {
  return most_learners(options) > 1 || is_asynchronous(options);
}
// Groups of learners that are in sync inside and asynchronous to each other: the workers of the
// parameter servers.
inline std::int64_t sync_groups(const RunOptions& options) {
  if (!is_asynchronous(options)) return 1;
  const LearnersOptions& learners = options.learners;
  return learners.sync == "groups" ? std::max<std::int64_t>(1, learners.sync_groups)
                                   : learners.count;
}
// The group of learner `index`; there are more learners than configured only where all are in one.
inline std::int64_t group_of_learner(const RunOptions& options, std::int64_t index) {
  const std::int64_t groups = sync_groups(options);
  return std::min(index * groups / options.learners.count, groups - 1);
}
inline std::int64_t parameter_servers(const RunOptions& options) {
  if (!is_asynchronous(options)) return 0;
  return options.learners.parameter_servers == 0 ? 1 : options.learners.parameter_servers;
}

// Whether shards have processes of their own: asked for, or because there are several learners, of
// which none may take the replay with it.
inline bool shards_apart(const RunOptions& options) {
  if (learns_from_pictures(options)) return false;
  return options.replay.placement == "own" ||
         (options.replay.placement == "auto" && learns_in_groups(options));
}
inline bool is_prioritised(const RunOptions& options) {
  return options.replay.selector == "prioritised";
}

// Updates after which a learner makes no more, so that a run ends where it was told to; 0: no
// bound. Without environment actors stop.actor_steps counts updates too.
std::int64_t most_updates(const RunOptions& options);

// The options of a job on pictures once the training set's size is known: epochs as updates in
// stop.updates, evaluation.every (where evaluation.epochs is set) and, where it is 0,
// schedule.updates of its section. Others are returned as they are.
RunOptions with_epochs_as_updates(RunOptions options, std::int64_t pictures);

// replay.compression by column; kInvalidArgument quotes the entry that is none. Whether the columns
// exist is the table's to say.
Result<replay::ColumnCompression> column_compression(const ReplayOptions& options);

// kInvalidArgument with one line per contradiction. Options out of their described ranges are the
// reader's business and not looked at again.
Result<void> check_options(const RunOptions& options);

}  // namespace troupe::actors
