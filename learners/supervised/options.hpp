// Options of training a classifier on pictures, each described once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "envs/spec/options.hpp"
#include "envs/spec/result.hpp"
#include "learners/supervised/schedule.hpp"

namespace troupe::learners {

// What a classifier learns from.
struct PictureSpec {
  std::int64_t side = 0, channels = 3, classes = 0;
};

// Defaults are those of ResNet-50 on ImageNet (He et al. 2016; Goyal et al. 2017,
// arXiv:1706.02677).
struct ClassifierOptions {
  std::int64_t batch = 256;
  std::int64_t depth = 50, width = 64;
  bool small_stem = false;
  bool zero_gamma = true;
  double label_smoothing = 0.1;
  std::string optimizer = "sgd";
  double momentum = 0.9;
  bool nesterov = true;
  double weight_decay = 1e-4;
  double trust = 0.001;
  double average = 0;
  std::string batch_norm = "replica";
  std::int64_t accumulate = 1, stages = 1;
  std::string precision = "f32";
  std::vector<std::int64_t> mean, deviation;
  ScheduleOptions schedule;
};

template <class Visitor>
void describe(Visitor& visitor, ClassifierOptions& options) {
  visitor.field("batch", options.batch, between(1, 1 << 20),
                "Pictures of an update, divided over the synchronised replicas.");
  visitor.field("depth", options.depth, between(18, 101), "Layers: 18, 34, 50 or 101.");
  visitor.field("width", options.width, between(1, 1024), "Channels of the first stage.");
  visitor.field("small_stem", options.small_stem,
                "Begin with one 3x3 convolution, for pictures of 32 pixels or so.");
  visitor.field("zero_gamma", options.zero_gamma, "Residual blocks begin as their shortcuts.");
  visitor.field("label_smoothing", options.label_smoothing, between(0, 1),
                "Share of the target that is spread over all classes.");
  visitor.choice("optimizer", options.optimizer, {"sgd", "lars"},
                 "SGD with momentum, or LARS's rates by layer for large batches.");
  visitor.field("momentum", options.momentum, between(0, 1), "Momentum of the gradients.");
  visitor.field("nesterov", options.nesterov, "Nesterov's momentum.");
  visitor.field("weight_decay", options.weight_decay, at_least(0),
                "Decay of weights; not of scales, shifts and biases.");
  visitor.field("trust", options.trust, above(0), "LARS's coefficient.");
  visitor.field("average", options.average, between(0, 1),
                "Decay of the averaged weights that are evaluated; 0: the weights themselves.");
  visitor.choice("batch_norm", options.batch_norm, {"replica", "global"},
                 "Batch statistics of each replica by itself, or over all in sync.");
  visitor.field("accumulate", options.accumulate, between(1, 1024),
                "Parts of a replica's share that go through the network one after the other.");
  visitor.field("stages", options.stages, between(1, 64),
                "Stages that each replica's network is cut into, on threads of their own, with its "
                "parts (`accumulate`) under way in them one behind the other.");
  visitor.choice("precision", options.precision, {"f32", "bf16"},
                 "What convolutions and products are computed in.");
  visitor.field("mean", options.mean, between(0, 255),
                "Mean of each channel that pictures are brought to 0 from; empty: 128.");
  visitor.field("deviation", options.deviation, between(1, 255),
                "Deviation of each channel that they are divided by; empty: 64.");
  visitor.group("schedule", options.schedule, "The learning rate.");
}

// Updates of so many epochs of a set: each ends with what is left of it.
inline std::int64_t updates_of(std::int64_t epochs, std::int64_t size, std::int64_t batch) {
  return epochs * ((size + batch - 1) / batch);
}

// What the network of these options learns, as a count of numbers.
std::int64_t parameter_count(const ClassifierOptions& options, const PictureSpec& pictures);

// kInvalidArgument naming the option: a batch that cannot be divided, lists of another length than
// `channels`, stages with what they cannot do, a schedule that check() refuses.
Result<void> check(const ClassifierOptions& options, std::int64_t replicas, std::int64_t channels);

}  // namespace troupe::learners
