// Contradictions between options, with the arithmetic that the messages must show.
#include "actors/config/checks.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/actors/config/checked_options.hpp"

namespace troupe::actors {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ChecksTest, TheDefaultsWithATaskAreAccepted) { EXPECT_EQ(error(good_options()), "accepted"); }

TEST(ChecksTest, TheTaskMustBeSet) {
  EXPECT_THAT(error(RunOptions{}), HasSubstr("environment.name is not set"));
}

TEST(ChecksTest, ActorCountsAreOrdered) {
  RunOptions options = good_options();
  options.actors.min = 3;
  EXPECT_THAT(error(options), HasSubstr("actors.min 3 is more than actors.count 2"));
  options.actors.min = 1;
  options.actors.max = 1;
  EXPECT_THAT(error(options), HasSubstr("actors.count 2 is more than actors.max 1"));
}

TEST(ChecksTest, SeveralLearnersNeedWhatIsTrueOfSeveral) {
  RunOptions options = good_options();
  options.learners.count = 2;
  EXPECT_EQ(error(options), "accepted");
  EXPECT_TRUE(shards_apart(options));
  EXPECT_FALSE(shards_apart(good_options()));
  options.replay.placement = "learner";
  EXPECT_THAT(error(options), HasSubstr("learners.count is 2, but replay.placement is learner"));
  options.replay.placement = "own";
  options.deterministic = true;
  EXPECT_THAT(error(options), HasSubstr("learners.count: 1 and learners.replicas: 2"));
  options.deterministic = false;
  options.job = "null";
  EXPECT_THAT(error(options), HasSubstr("the job null has nothing that could be in step"));
  options.job = "d4pg";
  options.replay.selector = "prioritised";
  EXPECT_THAT(error(options), HasSubstr("write replay.weight_scale: table"));
  options.replay.weight_scale = "table";
  EXPECT_EQ(error(options), "accepted");
  options.learners.count = 3;
  options.learners.learner.replicas = 5;
  EXPECT_THAT(error(options), HasSubstr("d4pg.batch 256 does not divide by learners.count x "
                                        "learners.replicas = 15; the remainder is 1"));
}

TEST(ChecksTest, WithoutEnvironmentActorsThereMustBeAFileAndIsNoRatio) {
  RunOptions options = good_options();
  options.actors.count = 0;
  EXPECT_THAT(error(options), HasSubstr("actors.count is 0, but replay.prefill names no file"));
  options.replay.prefill = "episodes.hdf5";
  options.replay.min_size = 10;  // with a ratio its band would be too narrow
  EXPECT_EQ(error(options), "accepted");
  EXPECT_EQ(samples_per_insert(options), 0);
}

RunOptions picture_options() {
  RunOptions options;
  options.job = "resnet";
  options.data.set.kind = "synthetic";
  options.stop.epochs = 2;
  return options;
}

TEST(ChecksTest, AJobOnPicturesNeedsASetAndAnEnd) {
  RunOptions options = picture_options();
  EXPECT_EQ(error(options), "accepted");
  options.data.set.kind = "idx";
  EXPECT_THAT(error(options), HasSubstr("data.path is not set"));
  options = picture_options();
  options.stop.epochs = 0;
  EXPECT_THAT(error(options), HasSubstr("resnet.schedule: updates is 0"));
  options.learners.learner.resnet.schedule.decay = "constant";
  EXPECT_EQ(error(options), "accepted");
  options.actors.count = 0;
  EXPECT_THAT(error(options), HasSubstr("without data actors nobody reads pictures"));
}

TEST(ChecksTest, WhatAJobDoesNotLookAtIsRefused) {
  RunOptions options = picture_options();
  options.replay.capacity = 5;
  options.environment.name = "pendulum";
  options.learners.learner.d4pg.sigma = 1;
  options.stop.actor_steps = 5;
  options.deterministic = true;
  EXPECT_THAT(error(options),
              AllOf(HasSubstr("replay.capacity has no effect with job: resnet; remove it"),
                    HasSubstr("environment.name has no effect"), HasSubstr("d4pg.sigma"),
                    HasSubstr("stop.actor_steps"), HasSubstr("deterministic has no effect")));
  options = good_options();
  options.learners.learner.resnet.depth = 34;
  options.data.lease = 3;
  options.stop.accuracy = 0.5;
  EXPECT_THAT(error(options), AllOf(HasSubstr("resnet.depth has no effect with job: d4pg"),
                                    HasSubstr("data.lease"), HasSubstr("stop.accuracy")));
}

TEST(ChecksTest, OptionsOfANetworkAreCheckedTogether) {
  RunOptions options = picture_options();
  options.learners.learner.resnet.depth = 20;
  EXPECT_THAT(error(options), HasSubstr("resnet.depth is 20, not 18, 34, 50 or 101"));
  options = picture_options();
  options.learners.learner.replicas = 3;
  EXPECT_THAT(error(options), HasSubstr("resnet.batch 256 cannot be divided over 3 replicas"));
  options.learners.learner.replicas = 2;
  options.learners.count = 2;
  EXPECT_EQ(error(options), "accepted");
  EXPECT_FALSE(shards_apart(options));
  options.learners.count = 3;
  EXPECT_THAT(error(options), HasSubstr("resnet.batch 256 cannot be divided over 6 replicas"));
  options.learners.count = 2;
  options.learners.sync = "parameter_servers";
  EXPECT_THAT(error(options), HasSubstr("learners of job: resnet train in sync only"));
  options = picture_options();
  options.data.augment.evaluation_resize = 100;
  EXPECT_THAT(error(options), HasSubstr("data.augment.evaluation_resize is below size"));
}

TEST(ChecksTest, EpochsBecomeUpdatesOnceTheSizeOfTheSetIsKnown) {
  RunOptions options = picture_options();
  options.evaluation.epochs = 1;
  RunOptions resolved = with_epochs_as_updates(options, 1000);  // 3 batches of 256 and one of 232
  EXPECT_EQ(resolved.stop.updates, 8);
  EXPECT_EQ(resolved.evaluation.every, 4);
  EXPECT_EQ(resolved.learners.learner.resnet.schedule.updates, 8);
  options.stop.updates = 5;
  options.evaluation.epochs = 0;
  options.evaluation.every = 3;
  options.learners.learner.resnet.schedule.updates = 100;
  resolved = with_epochs_as_updates(options, 1000);
  EXPECT_EQ(resolved.stop.updates, 5);
  EXPECT_EQ(resolved.evaluation.every, 3);
  EXPECT_EQ(resolved.learners.learner.resnet.schedule.updates, 100);
  EXPECT_EQ(error(resolved), "accepted");  // as nodes read it
}

TEST(ChecksTest, TheTableMustHoldItsFirstSample) {
  RunOptions options = good_options();
  options.replay.min_size = 2000;
  options.replay.capacity = 1999;
  EXPECT_THAT(error(options), HasSubstr("replay: min_size 2000 exceeds capacity 1999"));
  options.replay.capacity = 2000;
  EXPECT_EQ(error(options), "accepted");
  options.replay.shards = 3000;
  EXPECT_THAT(error(options),
              HasSubstr("exceeds what 2 of 3000 shards hold, 2 x capacity / shards = 0"));
}

TEST(ChecksTest, ColumnsArePackedByName) {
  RunOptions options = good_options();
  options.replay.compression = {"pixels=zstd", "observation=none", "depth=lz4"};
  EXPECT_EQ(error(options), "accepted");
  const auto packing = column_compression(options.replay);
  ASSERT_TRUE(packing);
  EXPECT_EQ(*packing, (replay::ColumnCompression{{"pixels", replay::Compression::kZstd},
                                                 {"observation", replay::Compression::kNone},
                                                 {"depth", replay::Compression::kLz4}}));
  for (const char* wrong : {"pixels", "pixels=gzip", "=zstd", "pixels="}) {
    options.replay.compression = {wrong};
    EXPECT_THAT(error(options),
                AllOf(HasSubstr("'" + std::string(wrong) + "'"), HasSubstr("column=zstd")));
  }
}

TEST(ChecksTest, ADiskNeedsAFolderAndBytes) {
  RunOptions options = good_options();
  options.replay.disk = {"/var/tmp", 0};
  EXPECT_THAT(error(options), HasSubstr("replay.disk.bytes is 0"));
  options.replay.disk = {"", 1000};
  EXPECT_THAT(error(options), HasSubstr("replay.disk.folder names no folder"));
  options.replay.disk = {"/var/tmp", 1000000};
  EXPECT_EQ(error(options), "accepted");
}

TEST(ChecksTest, ABandTooNarrowIsRefusedWithTheSum) {
  RunOptions options = good_options();  // 2 actors, prefetch 4, batch 256
  options.replay.samples_per_insert = 32;
  options.replay.error_buffer = 543;  // band 33.94 < 2 + 32
  EXPECT_THAT(error(options),
              AllOf(HasSubstr("replay: 2 x error_buffer / samples_per_insert"),
                    HasSubstr("2 x 543 / 32 = 33.9375 items"), HasSubstr("2 + 4 x 256 / 32 = 34"),
                    HasSubstr("raise error_buffer to 544")));
  options.replay.error_buffer = 544;  // exactly 34
  EXPECT_EQ(error(options), "accepted");
}

TEST(ChecksTest, TheDefaultErrorBufferIsATenthOfTheFirstSamples) {
  RunOptions options = good_options();
  options.replay.min_size = 1000;
  options.replay.samples_per_insert = 32;
  const LimiterFigures figures = limiter_figures(options);
  EXPECT_DOUBLE_EQ(figures.error_buffer, 3200);
  EXPECT_DOUBLE_EQ(figures.band, 200);
  EXPECT_DOUBLE_EQ(figures.needed, 34);
  EXPECT_EQ(figures.flush_steps, 12);  // 200 / (4 x 2 actors x credit 2) = 12.5
}

TEST(ChecksTest, SegmentsAreNeverShorterThanOneStep) {
  RunOptions options = good_options();
  options.actors.count = options.actors.max = 64;
  EXPECT_EQ(limiter_figures(options).flush_steps, 1);
}

TEST(ChecksTest, WithoutARatioThereIsNoBand) {
  RunOptions options = good_options();
  options.replay.samples_per_insert = 0;
  options.replay.error_buffer = 1e-9;
  EXPECT_EQ(error(options), "accepted");
  EXPECT_TRUE(std::isinf(limiter_figures(options).band));
  EXPECT_GT(limiter_figures(options).flush_steps, 1);
}

TEST(ChecksTest, ReplicasShareTheBatchEvenly) {
  RunOptions options = good_options();
  options.learners.learner.replicas = 3;
  EXPECT_THAT(error(options), HasSubstr("d4pg.batch 256 does not divide by"));
  options.learners.learner.replicas = 4;
  EXPECT_EQ(error(options), "accepted");
}

TEST(ChecksTest, LearnersThatAreNotInSyncHaveServersAndGroupsThatDivide) {
  RunOptions options = good_options();
  options.learners.parameter_servers = 2;
  EXPECT_THAT(error(options),
              HasSubstr("learners.parameter_servers is 2, but learners.sync is all_reduce"));
  options.learners.sync = "parameter_servers";
  options.learners.count = 4;
  EXPECT_EQ(error(options), "accepted");
  EXPECT_TRUE(shards_apart(options));
  EXPECT_EQ(sync_groups(options), 4);
  EXPECT_EQ(parameter_servers(options), 2);
  options.learners.sync_groups = 2;
  EXPECT_THAT(error(options), HasSubstr("where each learner is a group of its own"));
  options.learners.sync = "groups";
  EXPECT_EQ(error(options), "accepted");
  EXPECT_EQ(sync_groups(options), 2);
  EXPECT_EQ(group_of_learner(options, 1), 0);
  EXPECT_EQ(group_of_learner(options, 2), 1);
  options.learners.sync_groups = 3;
  EXPECT_THAT(
      error(options),
      HasSubstr("learners.count 4 does not divide by learners.sync_groups 3; the remainder is 1"));
  options.learners.sync_groups = 0;
  EXPECT_THAT(error(options), HasSubstr("write a divisor of learners.count 4"));
  options.learners.sync = "all_reduce";
  options.learners.parameter_servers = 0;
  options.learners.sync_groups = 2;
  EXPECT_THAT(error(options), HasSubstr("where all learners are in sync"));
}

TEST(ChecksTest, LearnersThatAreNotInSyncNeedWhatIsTrueOfThem) {
  RunOptions options = good_options();
  options.learners.sync = "parameter_servers";
  EXPECT_EQ(error(options), "accepted");  // one learner, one server
  EXPECT_EQ(parameter_servers(options), 1);
  options.deterministic = true;
  EXPECT_THAT(error(options), HasSubstr("who is asynchronous follows none"));
  options.deterministic = false;
  options.replay.placement = "learner";
  EXPECT_THAT(error(options), HasSubstr("but replay.placement is learner"));
  options.replay.placement = "auto";
  options.job = "null";
  EXPECT_THAT(error(options), HasSubstr("the job null has no parameters to serve"));
  options.job = "d4pg";
  // Policy and critic of three hidden layers, each with its normalisation.
  options.learners.parameter_servers = 21;
  EXPECT_THAT(error(options),
              HasSubstr("learners.parameter_servers 21 is more than the 2 x (4 + 4) "
                        "layers + 4 = 20 arrays of policy and critic"));
  options.learners.parameter_servers = 0;
  // Two groups draw twice as much ahead: 2 actors + 2 x 4 x 256 / 32 = 66 items of 200.
  options.learners.count = 4;
  options.learners.sync = "groups";
  options.learners.sync_groups = 2;
  EXPECT_DOUBLE_EQ(limiter_figures(options).needed, 66);
  options.learners.learner.replicas = 3;
  EXPECT_THAT(error(options), HasSubstr("learners.count / 2 groups x learners.replicas = 6"));
  options.learners.learner.replicas = 1;
  options.replay.selector = "prioritised";
  EXPECT_THAT(error(options), HasSubstr("write replay.weight_scale: table"));
  options.learners.sync = "parameter_servers";
  options.learners.sync_groups = 0;
  EXPECT_EQ(error(options), "accepted");  // each sees the whole of its batches
}

TEST(ChecksTest, TheSupportHasAnExtent) {
  RunOptions options = good_options();
  options.learners.learner.d4pg.v_min = 10;
  options.learners.learner.d4pg.v_max = 10;
  EXPECT_THAT(error(options), HasSubstr("d4pg.v_min 10 must be less than d4pg.v_max 10"));
}

TEST(ChecksTest, NetworksHaveALayer) {
  RunOptions options = good_options();
  options.learners.learner.d4pg.policy.clear();
  EXPECT_THAT(error(options), HasSubstr("d4pg.policy is empty"));
}

TEST(ChecksTest, DevicesAreOnesThisBuildKnows) {
  RunOptions options = good_options();
  options.learners.learner.devices = {"cpu", "gpu"};
  EXPECT_THAT(error(options), HasSubstr("learners.devices names \"gpu\"; this build knows cpu"));
  options.learners.learner.devices.clear();
  EXPECT_THAT(error(options), HasSubstr("learners.devices is empty"));
}

TEST(ChecksTest, EndpointsHaveASchemeAndAPort) {
  RunOptions options = good_options();
  for (const char* good : {"tcp://127.0.0.1:5555", "tcp://127.0.0.1:*", "ipc:///tmp/troupe"}) {
    options.telemetry.endpoint = good;
    EXPECT_EQ(error(options), "accepted") << good;
  }
  for (const char* bad : {"", "5555", "127.0.0.1:5555", "tcp://127.0.0.1", "tcp://:5555",
                          "tcp://127.0.0.1:65536", "tcp://127.0.0.1:0", "tcp://h:x", "ipc://"}) {
    options.telemetry.endpoint = bad;
    EXPECT_THAT(error(options), HasSubstr("telemetry.endpoint is")) << bad;
  }
}

TEST(ChecksTest, AllContradictionsAreListed) {
  RunOptions options;
  options.actors.min = 3;
  options.learners.learner.d4pg.v_max = -1000;
  EXPECT_THAT(error(options), AllOf(HasSubstr("environment.name"), HasSubstr("actors.min"),
                                    HasSubstr("d4pg.v_min")));
}

TEST(MostUpdates, AreThoseOfTheRunAndOfflineThoseThatStandForStepsToo) {
  RunOptions options;
  options.stop.actor_steps = 500;
  EXPECT_EQ(most_updates(options), 0);
  options.stop.updates = 700;
  EXPECT_EQ(most_updates(options), 700);
  options.actors.count = 0;
  EXPECT_EQ(most_updates(options), 500);
  options.stop.updates = 0;
  EXPECT_EQ(most_updates(options), 500);
  options.stop.actor_steps = 0;
  options.stop.updates = 3;
  EXPECT_EQ(most_updates(options), 3);
}

}  // namespace
}  // namespace troupe::actors
