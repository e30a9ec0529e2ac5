// Options of training SN-GAN, each described once.
#pragma once

#include <cstdint>
#include <string>

#include "envs/spec/options.hpp"
#include "envs/spec/result.hpp"
#include "learners/supervised/options.hpp"
#include "learners/supervised/schedule.hpp"

namespace troupe::learners {

// Defaults are those of the authors' class-conditional CIFAR-10 (Miyato et al. 2018,
// arXiv:1802.05957; Miyato and Koyama 2018, arXiv:1802.05637).
struct GanOptions {
  std::int64_t batch = 64, generator_batch = 128, discriminator_steps = 5;
  bool conditional = true;
  std::int64_t noise = 128, generator_width = 256, discriminator_width = 128;
  double beta1 = 0, beta2 = 0.9;
  ScheduleOptions schedule{.rate = 2e-4,
                           .per_batch = 0,
                           .warm_up = 0,
                           .decay = "linear",
                           .updates = 0,
                           .decay_from = 0,
                           .steps = {},
                           .step_factor = 0.1};
  std::string classifier, features;
  std::int64_t samples = 10000;
  double collapse_share = 0.25;

  // Pictures that an update learns from.
  std::int64_t pictures() const { return batch * discriminator_steps; }
};

template <class Visitor>
void describe(Visitor& visitor, GanOptions& options) {
  visitor.field("batch", options.batch, between(1, 1 << 20),
                "Pictures of a step of the discriminator, and as many generated ones, over the "
                "synchronised replicas.");
  visitor.field("generator_batch", options.generator_batch, between(1, 1 << 20),
                "Generated pictures of a step of the generator, over the synchronised replicas.");
  visitor.field("discriminator_steps", options.discriminator_steps, between(1, 1000),
                "Steps of the discriminator before each of the generator; together they are one "
                "update.");
  visitor.field("conditional", options.conditional,
                "Generate by class: conditional batch norms, and the projection discriminator.");
  visitor.field("noise", options.noise, between(1, 65536), "Numbers that a picture is made from.");
  visitor.field("generator_width", options.generator_width, between(1, 4096),
                "Channels of the generator's last block.");
  visitor.field("discriminator_width", options.discriminator_width, between(1, 4096),
                "Channels of the discriminator's first block.");
  visitor.field("beta1", options.beta1, between(0, 1), "Adam's decay of the gradient's mean.");
  visitor.field("beta2", options.beta2, between(0, 1), "Adam's decay of its square.");
  visitor.group("schedule", options.schedule, "The learning rate of both networks.");
  visitor.field("classifier", options.classifier,
                "Run of a classifier on the same set, by whose features and classes samples are "
                "judged; empty: by none.");
  visitor.field("features", options.features,
                "TorchScript file of the network by whose features samples are judged instead: "
                "pictures f32 [B, channels, side, side] from 0 to 255 to features [B, F] or to "
                "(features, logits [B, K]); empty: the classifier, if one is named.");
  visitor.field("samples", options.samples, between(2, 10000000),
                "Pictures generated for a judgement, and real ones compared with.");
  visitor.field("collapse_share", options.collapse_share, between(0, 1),
                "Warn of a collapse when samples of a class differ less from each other than real "
                "ones, by this share of the variance; 0: never.");
}

// What the generator of these options learns, as a count of numbers.
std::int64_t generator_parameters(const GanOptions& options, const PictureSpec& pictures);

// kInvalidArgument naming the option: batches that cannot be divided over the replicas, a side that
// the architecture does not have, a schedule that check() refuses.
Result<void> check(const GanOptions& options, std::int64_t replicas, std::int64_t side);

}  // namespace troupe::learners
