// Two networks and their optimizers: they move as they should, replicas agree, and a resumed
// learner goes on as if nothing had been.
#include "learners/gan/gan_learner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "learners/data/loader.hpp"
#include "learners/data/picture_feed.hpp"
#include "learners/gan/sampler.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::learners {
namespace {

using testing::HasSubstr;

constexpr PictureSpec kPictures{.side = 32, .channels = 1, .classes = 3};

GanOptions options_of() {
  GanOptions options;
  options.batch = 8;
  options.generator_batch = 8;
  options.discriminator_steps = 2;
  options.noise = 8;
  options.generator_width = options.discriminator_width = 4;
  options.schedule.decay = "constant";
  return options;
}

std::unique_ptr<GanLearner> make(std::int64_t replicas, const GanOptions& options = options_of()) {
  LearnerOptions placement;
  placement.replicas = replicas;
  placement.metrics_every = 1;
  LearnerContext context;
  context.seed = 3;
  auto made = GanLearner::create(options, placement, kPictures, context);
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

// Grey pictures of three shades with a gradient, different in every update.
replay::Batch batch(std::uint64_t number, std::int64_t rows = 16) {
  replay::Batch out(data::picture_columns(32, 1), rows);
  auto* labels = reinterpret_cast<std::int64_t*>(out.bytes(1).data());
  Random random(number);
  for (std::int64_t row = 0; row < rows; ++row) {
    labels[row] = row % 3;
    for (std::int64_t i = 0; i < 1024; ++i)
      out.bytes(0)[static_cast<std::size_t>(row * 1024 + i)] = static_cast<std::uint8_t>(
          60 * labels[row] + i % 32 + static_cast<std::int64_t>(random.below(20)));
  }
  return out;
}

std::map<std::string, double> train(GanLearner& learner, std::uint64_t from, std::uint64_t to) {
  std::map<std::string, double> metrics;
  for (std::uint64_t number = from; number < to; ++number) {
    const auto report = learner.update(batch(number));
    EXPECT_TRUE(report) << report.error().message;
    if (!report) break;
    EXPECT_EQ(report->version, number + 1);
    metrics = report->metrics;
  }
  return metrics;
}

TEST(GanLearner, TheDiscriminatorLearnsToTellRealFromGenerated) {
  GanOptions options = options_of();
  options.schedule.rate = 2e-3;
  options.discriminator_steps = 4;
  const auto learner = make(1, options);
  std::map<std::string, double> metrics;
  for (std::uint64_t number = 0; number < 15; ++number) {
    const auto report = learner->update(batch(number, 32));
    ASSERT_TRUE(report) << report.error().message;
    metrics = report->metrics;
  }
  EXPECT_GT(metrics.at("score/real"), metrics.at("score/fake"));
  EXPECT_LT(metrics.at("loss/discriminator"), 2);  // of one that says nothing
}

TEST(GanLearner, ReplicasStayEqualAndARestIsDivided) {
  const auto learner = make(2);
  (void)train(*learner, 0, 2);
  EXPECT_EQ(learner->state_hash(0), learner->state_hash(1));
  const auto report = learner->update(batch(9, 11));  // parts of 3, 3 and 3, 2
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(std::isfinite(report->metrics.at("loss/discriminator")));
  EXPECT_EQ(learner->state_hash(0), learner->state_hash(1));
  for (const std::int64_t rows : {3, 1}) {  // parts of 1, 1 and 1, none; of 1, none and none
    const auto rest = learner->update(batch(9, rows));
    ASSERT_TRUE(rest) << rest.error().message;
    EXPECT_TRUE(std::isfinite(rest->metrics.at("loss/generator")));
    EXPECT_EQ(learner->state_hash(0), learner->state_hash(1));
  }
}

TEST(GanLearner, AResumedLearnerGoesOnToTheSameBits) {
  for (const std::int64_t replicas : {1, 2}) {
    const TemporaryFolder folder;
    const auto whole = make(replicas), first = make(replicas), second = make(replicas);
    (void)train(*whole, 0, 4);
    (void)train(*first, 0, 2);
    ASSERT_TRUE(first->save(folder.path()));
    const auto loaded = second->load(folder.path());
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(second->version(), 2U);
    (void)train(*second, 2, 4);
    for (int r = 0; r < replicas; ++r) EXPECT_EQ(second->state_hash(r), whole->state_hash(r));
  }
}

TEST(GanLearner, AnUpdateThatIsNotFiniteChangesNothing) {
  GanOptions options = options_of();
  options.schedule.rate = 1e30;
  const auto learner = make(2, options);
  for (std::uint64_t number = 0; number < 10; ++number) {
    const std::uint64_t before = learner->state_hash(0);
    const auto report = learner->update(batch(number));
    if (report) continue;
    EXPECT_EQ(report.error().code, ErrorCode::kNotFinite);
    EXPECT_EQ(learner->state_hash(0), before);
    EXPECT_EQ(learner->version(), number);
    return;
  }
  FAIL() << "no update failed at a rate of 1e30";
}

TEST(GanLearner, ASamplerMakesThePicturesOfThePublishedGenerator) {
  const auto learner = make(1);
  (void)train(*learner, 0, 2);
  const auto sampler = make_sampler(options_of(), kPictures, 1).value();
  const auto set = learner->parameters();
  ASSERT_TRUE(sampler->set_parameters(*set));
  const std::vector<float> noise(3 * 8, 0.5F);
  const auto pictures = sampler->sample(noise, std::vector<std::int64_t>{0, 1, 1});
  ASSERT_TRUE(pictures) << pictures.error().message;
  ASSERT_EQ(pictures->size(), 3U * 1024);
  const auto picture = [&](int i) {
    return std::vector(pictures->begin() + i * 1024, pictures->begin() + (i + 1) * 1024);
  };
  EXPECT_NE(picture(0), picture(1));
  EXPECT_EQ(picture(1), picture(2));
  std::int64_t count = 0;
  for (const auto& [name, array] : set->arrays)
    if (name.find("running_") == std::string::npos)
      count += static_cast<std::int64_t>(array.values.size());
  EXPECT_EQ(generator_parameters(options_of(), kPictures), count);
  EXPECT_FALSE(sampler->sample(noise, std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_FALSE(sampler->sample(noise, std::vector<std::int64_t>{0, 1}));
  models::ParameterSet broken = *set;
  broken.arrays.erase("l.weight");
  EXPECT_THAT(sampler->set_parameters(broken).error().message, HasSubstr("l.weight"));
}

TEST(GanLearner, WhatDoesNotFitIsNamed) {
  LearnerOptions placement;
  placement.replicas = 3;
  EXPECT_THAT(GanLearner::create(options_of(), placement, kPictures, {}).error().message,
              HasSubstr("batch 8 cannot be divided over 3 replicas"));
  EXPECT_THAT(GanLearner::create(options_of(), {}, {28, 1, 3}, {}).error().message,
              HasSubstr("a side of 28"));
}

}  // namespace
}  // namespace troupe::learners
