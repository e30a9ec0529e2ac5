// A network in stages gives what it gives in one piece, and a stage that fails stops the others.
#include "learners/supervised/pipeline.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "learners/supervised/classifier.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

constexpr std::int64_t kSide = 12, kClasses = 4;

models::ResNet network() {
  return models::ResNet::create(
             {.depth = 18, .classes = kClasses, .channels = 3, .width = 8, .small_stem = true})
      .value();
}

models::ImageArrays arrays_of(const models::ResNet& model) {
  Random random(5);
  return {model.arrays(), random};
}

// Micro-batches of unequal sizes, channels-last, with their labels.
struct Data {
  std::vector<at::Tensor> pictures, labels;
  Data() {
    Random random(9);
    for (const std::int64_t rows : {4, 4, 3, 5, 2}) {
      const at::Tensor values = at::empty({rows, kSide, kSide, 3});
      for (std::int64_t i = 0; i < values.numel(); ++i)
        values.mutable_data_ptr<float>()[i] = static_cast<float>(random.normal());
      pictures.push_back(values.permute({0, 3, 1, 2}));
      labels.push_back(at::arange(rows, at::kLong).remainder(kClasses));
    }
  }
  at::Tensor loss(std::size_t index, const at::Tensor& logits) const {
    return at::cross_entropy_loss(logits, labels[index], {}, at::Reduction::Sum);
  }
};

std::vector<at::Device> devices(int count) {
  std::vector<at::Device> list;
  for (int i = 0; i < count; ++i) list.emplace_back("cpu:" + std::to_string(i));
  return list;
}

TEST(ResNetPipeline, GivesTheBitsOfTheMicroBatchesOneAfterTheOther) {
  at::set_num_threads(1);
  const models::ResNet model = network();
  const Data data;
  models::ImageArrays whole = arrays_of(model);
  std::vector<double> losses;
  for (std::size_t i = 0; i < data.pictures.size(); ++i) {
    const models::Pass pass{whole.parameters().parameters(), whole.buffers(), true};
    const at::Tensor loss = data.loss(i, model.forward(pass, data.pictures[i]));
    losses.push_back(loss.item<double>());
    loss.backward();
  }
  for (const int stages : {1, 2, 3, 10}) {
    models::ImageArrays cut = arrays_of(model);
    const auto pipeline = ResNetPipeline::create(model, devices(stages), 1).value();
    for (int again = 0; again < 2; ++again) {  // nothing is left of a run but its result
      cut.buffers() = arrays_of(model).buffers();
      std::vector<double> found;
      pipeline->run(cut, data.pictures, [&](std::size_t index, const at::Tensor& logits) {
        const at::Tensor loss = data.loss(index, logits);
        found.push_back(loss.item<double>());
        return loss;
      });
      EXPECT_EQ(found, losses) << stages;
      EXPECT_TRUE(at::equal(cut.parameters().gradient(), whole.parameters().gradient())) << stages;
      EXPECT_GT(cut.parameters().gradient().norm().item<double>(), 0);
      for (std::size_t i = 0; i < cut.buffers().size(); ++i)
        EXPECT_TRUE(at::equal(cut.buffers()[i], whole.buffers()[i]))
            << stages << " stages, " << model.arrays().buffers()[i].name;
    }
  }
}

TEST(ResNetPipeline, AFailureIsThrownAndChangesNothing) {
  const models::ResNet model = network();
  const Data data;
  models::ImageArrays arrays = arrays_of(model);
  const auto pipeline = ResNetPipeline::create(model, devices(3), 1).value();
  const auto failing = [&](std::size_t index, const at::Tensor& logits) {
    if (index == 2) throw std::runtime_error("the third is bad");
    return data.loss(index, logits);
  };
  EXPECT_THROW(pipeline->run(arrays, data.pictures, failing), std::runtime_error);
  EXPECT_EQ(arrays.parameters().gradient().norm().item<double>(), 0);
  for (std::size_t i = 0; i < arrays.buffers().size(); ++i)
    EXPECT_TRUE(at::equal(arrays.buffers()[i], arrays_of(model).buffers()[i]));
  pipeline->run(arrays, data.pictures, [&](std::size_t index, const at::Tensor& logits) {
    return data.loss(index, logits);
  });
  EXPECT_GT(arrays.parameters().gradient().norm().item<double>(), 0);
}

TEST(ResNetPipeline, HasAStageForEachDeviceAndAPartForEachStage) {
  const models::ResNet model = network();
  EXPECT_EQ(ResNetPipeline::create(model, devices(2), 1).value()->stages(), 2U);
  EXPECT_FALSE(ResNetPipeline::create(model, {}, 1));
  EXPECT_EQ(ResNetPipeline::create(model, devices(11), 1).error().message,
            "10 parts cannot be divided over 11 stages");
}

TEST(ResNetPipeline, AClassifierInStagesIsTheSameClassifier) {
  ClassifierOptions options;
  options.batch = 16;
  options.depth = 18;
  options.width = 8;
  options.small_stem = true;
  options.accumulate = 4;
  options.schedule = {.rate = 0.05, .per_batch = 0, .warm_up = 0, .decay = "constant", .steps = {}};
  const auto make = [&] {
    LearnerOptions placement;
    placement.threads = 1;
    placement.metrics_every = 1;
    return Classifier::create(options, placement, {kSide, 3, kClasses}, {}).value();
  };
  const auto whole = make();
  options.stages = 3;
  const auto cut = make();
  std::vector<std::uint8_t> pixels(16 * kSide * kSide * 3);
  std::vector<std::int64_t> labels;
  Random random(1);
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random.below(256));
  for (std::int64_t i = 0; i < 16; ++i) labels.push_back(i % kClasses);
  for (const std::int64_t count : {16, 16, 3}) {  // the last with fewer rows than parts
    const PictureRows rows{.count = count,
                           .global_count = count,
                           .side = kSide,
                           .channels = 3,
                           .pixels = pixels.data(),
                           .labels = labels.data()};
    const auto a = whole->update(rows), b = cut->update(rows);
    ASSERT_TRUE(a) << a.error().message;
    ASSERT_TRUE(b) << b.error().message;
    EXPECT_EQ(a->metrics, b->metrics);
    EXPECT_EQ(whole->state_hash(0), cut->state_hash(0));
  }
}

TEST(ResNetPipeline, WhatStagesCannotDoIsNamed) {
  ClassifierOptions options;
  options.schedule.decay = "constant";
  options.stages = 18;
  EXPECT_TRUE(check(options, 1, 3)) << check(options, 1, 3).error().message;
  options.stages = 19;
  EXPECT_EQ(check(options, 1, 3).error().message, "stages is 19, but the network has 18 parts");
  options.stages = 2;
  options.batch_norm = "global";
  EXPECT_NE(check(options, 1, 3).error().message.find("batch_norm: replica"), std::string::npos);
  options.batch_norm = "replica";
  options.precision = "bf16";
  EXPECT_NE(check(options, 1, 3).error().message.find("precision: f32"), std::string::npos);
}

}  // namespace
}  // namespace troupe::learners
