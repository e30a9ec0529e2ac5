// The classifier learns, its replicas agree, and a resumed one goes on as if nothing had been.
#include "learners/supervised/classifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "learners/data/loader.hpp"
#include "learners/supervised/predictor.hpp"
#include "tests/support/temporary_folder.hpp"

namespace troupe::learners {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSide = 12, kClasses = 4;

ClassifierOptions options_of(const std::string& batch_norm = "global") {
  ClassifierOptions options;
  options.batch = 32;
  options.depth = 18;
  options.width = 8;
  options.small_stem = true;
  options.batch_norm = batch_norm;
  options.average = 0.9;
  options.schedule = {.rate = 0.05, .per_batch = 0, .warm_up = 5, .decay = "constant", .steps = {}};
  return options;
}

std::unique_ptr<Classifier> make(const ClassifierOptions& options, std::int64_t replicas) {
  LearnerOptions placement;
  placement.replicas = replicas;
  placement.metrics_every = 1;
  LearnerContext context;
  context.seed = 3;
  auto made = Classifier::create(options, placement, {kSide, 3, kClasses}, context);
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

// Batches of a synthetic set, in the order of its epochs.
class Source {
 public:
  explicit Source(bool training = true)
      : loader_(data::make_synthetic(256, kClasses, kSide, training ? 1 : 2),
                loader_options(training)) {}

  data::Pictures batch(std::uint64_t number) {
    loader_.request(number / 8, static_cast<std::int64_t>(number % 8) * 32,
                    static_cast<std::int64_t>(number % 8 + 1) * 32);
    return *loader_.next();
  }

 private:
  static data::LoaderOptions loader_options(bool training) {
    data::LoaderOptions options;
    options.augment.size = kSide;
    options.augment.cut = "pad_crop";
    options.augment.padding = 1;
    options.augment.evaluation_resize = 0;
    options.training = training;
    return options;
  }
  data::Loader loader_;
};

PictureRows rows_of(const data::Pictures& pictures) {
  return {.count = pictures.size(),
          .global_count = pictures.size(),
          .side = kSide,
          .channels = 3,
          .pixels = pictures.pixels.data(),
          .labels = pictures.labels.data()};
}

// Updates number `from` to `to`; returns the last one's metrics.
std::map<std::string, double> train(Classifier& classifier, std::uint64_t from, std::uint64_t to) {
  Source source;
  std::map<std::string, double> metrics;
  for (std::uint64_t number = from; number < to; ++number) {
    const data::Pictures pictures = source.batch(number);
    const auto report = classifier.update(rows_of(pictures));
    EXPECT_TRUE(report) << report.error().message;
    if (!report) break;
    EXPECT_EQ(report->version, number + 1);
    metrics = report->metrics;
  }
  return metrics;
}

std::vector<float> values_of(const Classifier& classifier) {
  std::vector<float> values;
  const models::ParameterSetPtr set = classifier.parameters();
  for (const auto& [name, array] : set->arrays)
    values.insert(values.end(), array.values.begin(), array.values.end());
  return values;
}

double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(difference / size);
}

TEST(Classifier, LearnsToTellTheClassesApart) {
  const auto classifier = make(options_of("replica"), 1);
  train(*classifier, 0, 60);
  Source source(false);
  Classification counted(kClasses);
  for (std::uint64_t number = 0; number < 4; ++number) {
    const data::Pictures pictures = source.batch(number);
    ASSERT_TRUE(classifier->evaluate(rows_of(pictures), counted));
  }
  EXPECT_EQ(counted.total(), 128);
  EXPECT_GT(counted.top1(), 0.95);
}

TEST(Classifier, ReplicasWithGlobalStatisticsAreOneReplicaWithTheWholeBatch) {
  const auto one = make(options_of(), 1), two = make(options_of(), 2), four = make(options_of(), 4);
  const auto expected = train(*one, 0, 3);
  for (Classifier* several : {two.get(), four.get()}) {
    const auto metrics = train(*several, 0, 3);
    EXPECT_NEAR(metrics.at("loss"), expected.at("loss"), 1e-5);
    EXPECT_EQ(metrics.at("accuracy"), expected.at("accuracy"));
    EXPECT_LT(relative_difference(values_of(*one), values_of(*several)), 1e-5);
    for (int r = 1; r < several->replicas(); ++r)
      EXPECT_EQ(several->state_hash(r), several->state_hash(0));
  }
}

TEST(Classifier, AccumulatedPartsMakeOneUpdate) {
  // Batch norms see each part by itself, so the parts are compared with replicas of that size.
  auto parts = options_of("replica");
  parts.accumulate = 2;
  const auto accumulated = make(parts, 1), replicated = make(options_of("replica"), 2);
  const auto a = train(*accumulated, 0, 1), b = train(*replicated, 0, 1);
  EXPECT_NEAR(a.at("loss"), b.at("loss"), 1e-6);
  EXPECT_NEAR(a.at("gradient_norm") / b.at("gradient_norm"), 1, 1e-5);
}

TEST(Classifier, TwoRunsAgreeBitForBit) {
  const auto a = make(options_of("replica"), 2), b = make(options_of("replica"), 2);
  train(*a, 0, 5);
  train(*b, 0, 5);
  EXPECT_EQ(values_of(*a), values_of(*b));
  for (int r = 0; r < 2; ++r) EXPECT_EQ(a->state_hash(r), b->state_hash(r));
}

TEST(Classifier, AResumedRunGoesOnBitForBit) {
  TemporaryFolder folder;
  const auto whole = make(options_of("replica"), 2), first = make(options_of("replica"), 2),
             second = make(options_of("replica"), 2);
  train(*whole, 0, 8);
  train(*first, 0, 5);
  ASSERT_TRUE(first->save(folder.path()));
  const auto loaded = second->load(folder.path());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(second->version(), 5U);
  train(*second, 5, 8);
  EXPECT_EQ(values_of(*second), values_of(*whole));
  EXPECT_EQ(second->state_hash(0), whole->state_hash(0));
}

TEST(Classifier, AnotherNetworksCheckpointIsRefusedAndChangesNothing) {
  TemporaryFolder folder;
  const auto saved = make(options_of(), 1);
  ASSERT_TRUE(saved->save(folder.path()));
  auto wider = options_of();
  wider.width = 16;
  const auto other = make(wider, 1);
  const std::uint64_t before = other->state_hash(0);
  const auto loaded = other->load(folder.path());
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, HasSubstr("resnet.width = 8, but it is now 16"));
  EXPECT_EQ(other->state_hash(0), before);
}

TEST(Classifier, AnUpdateThatIsNotFiniteChangesNothing) {
  auto options = options_of("replica");
  options.schedule.rate = 1e30;
  options.schedule.warm_up = 0;
  const auto classifier = make(options, 2);
  Source source;
  for (std::uint64_t number = 0; number < 10; ++number) {
    const std::uint64_t before = classifier->state_hash(0);
    const std::vector<float> values = values_of(*classifier);
    const data::Pictures pictures = source.batch(number);
    const auto report = classifier->update(rows_of(pictures));
    if (report) continue;
    EXPECT_EQ(report.error().code, ErrorCode::kNotFinite);
    EXPECT_EQ(classifier->state_hash(0), before);
    EXPECT_EQ(classifier->version(), number);
    return;
  }
  FAIL() << "no update failed at a rate of 1e30";
}

// An epoch's end: 7 rows for three replicas, with two parts each.
TEST(Classifier, ReplicasTakePartsOfARestAsEqualAsCanBe) {
  for (const char* batch_norm : {"global", "replica"}) {
    auto options = options_of(batch_norm);
    options.batch = 30;
    Source source;
    const data::Pictures pictures = source.batch(0);
    PictureRows rows = rows_of(pictures);
    const auto many = make(options, 3);
    for (const std::int64_t count : {7, 3, 2, 1, 32}) {
      rows.count = rows.global_count = count;
      const auto report = many->update(rows);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_TRUE(std::isfinite(report->metrics.at("loss")));
      EXPECT_EQ(many->state_hash(0), many->state_hash(2));
    }
    if (std::string(batch_norm) == "replica") continue;
    // With common statistics it is the update of one replica that has all rows.
    for (const std::int64_t count : {7, 2}) {
      const auto one = make(options, 1), three = make(options, 3);
      rows.count = rows.global_count = count;
      ASSERT_TRUE(one->update(rows));
      ASSERT_TRUE(three->update(rows));
      EXPECT_LT(relative_difference(values_of(*three), values_of(*one)), 1e-5) << count;
    }
  }
}

TEST(Classifier, ItsParametersAreCounted) {
  for (const std::int64_t depth : {18, 34, 50, 101}) {
    auto options = options_of();
    options.depth = depth;
    options.small_stem = depth != 34;
    const auto classifier = make(options, 1);
    std::int64_t count = 0;
    const models::ParameterSetPtr set = classifier->parameters();
    for (const auto& [name, array] : set->arrays)
      if (name.find("running_") == std::string::npos)
        count += static_cast<std::int64_t>(array.values.size());
    EXPECT_EQ(parameter_count(options, {kSide, 3, kClasses}), count) << depth;
  }
  EXPECT_EQ(parameter_count(ClassifierOptions{}, {224, 3, 1000}), 25557032);
}

TEST(Classifier, APredictorGivesWhatItsEvaluationCounts) {
  const auto classifier = make(options_of(), 1);
  (void)train(*classifier, 0, 3);
  Source source(false);
  const data::Pictures pictures = source.batch(0);
  Classification expected(kClasses), found(kClasses);
  ASSERT_TRUE(classifier->evaluate(rows_of(pictures), expected));
  const auto predictor = make_predictor(options_of(), {kSide, 3, kClasses}, 1).value();
  ASSERT_TRUE(predictor->set_parameters(*classifier->parameters()));
  const auto outputs = predictor->outputs(pictures.pixels);
  ASSERT_TRUE(outputs) << outputs.error().message;
  ASSERT_TRUE(found.add(outputs->logits, pictures.labels));
  EXPECT_EQ(outputs->features.size(), 32U * 8 * 8);  // widths 8 to 64
  EXPECT_NEAR(found.loss(), expected.loss(), 1e-6);
  models::ParameterSet broken = *classifier->parameters();
  broken.arrays.erase("bn1.running_var");
  EXPECT_THAT(predictor->set_parameters(broken).error().message, HasSubstr("bn1.running_var"));
  EXPECT_FALSE(predictor->outputs(std::span(pictures.pixels).first(5)));
}

TEST(Classifier, WhatDoesNotFitIsNamed) {
  const auto classifier = make(options_of(), 2);
  Source source;
  data::Pictures pictures = source.batch(0);
  PictureRows rows = rows_of(pictures);
  rows.count = 0;
  EXPECT_THAT(classifier->update(rows).error().message, HasSubstr("no pictures"));
  pictures.labels[7] = kClasses;
  EXPECT_THAT(classifier->update(rows_of(pictures)).error().message, HasSubstr("row 7"));
  auto options = options_of();
  options.batch = 33;
  EXPECT_FALSE(check(options, 2, 3));
  options = options_of();
  options.mean = {1, 2};
  EXPECT_THAT(check(options, 1, 3).error().message, HasSubstr("3 channels"));
  options = options_of();
  options.depth = 20;
  EXPECT_FALSE(Classifier::create(options, {}, {kSide, 3, kClasses}, {}));
}

TEST(Classifier, HalfPrecisionLearnsToo) {
  auto options = options_of("replica");
  options.precision = "bf16";
  const auto classifier = make(options, 1);
  const auto first = train(*classifier, 0, 1), last = train(*classifier, 1, 40);
  EXPECT_LT(last.at("loss"), 0.8 * first.at("loss"));
}

}  // namespace
}  // namespace troupe::learners
