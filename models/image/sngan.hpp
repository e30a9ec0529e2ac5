// The generator and the discriminator of SN-GAN (Miyato et al. 2018, arXiv:1802.05957), class-
// conditional with conditional batch norm and the projection discriminator (Miyato and Koyama 2018,
// arXiv:1802.05637), as in the authors' code for 32x32 and 128x128 pictures.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "envs/spec/result.hpp"
#include "models/image/layers.hpp"

namespace troupe::models {

struct SnGanShape {
  std::int64_t side = 32;  // 32 or 128
  std::int64_t channels = 3;
  std::int64_t classes = 0;  // 0: unconditional
  std::int64_t noise = 128;  // z ~ N(0, 1)
  // Channels of the generator's last and the discriminator's first block. Published: 256 and 128 at
  // 32x32 (all blocks alike), 64 and 64 at 128x128 (doubling towards the middle).
  std::int64_t generator_width = 256, discriminator_width = 128;
};

// Published widths for a side.
SnGanShape published_sngan(std::int64_t side, std::int64_t classes);
// kInvalidArgument, naming the field.
Result<void> check(const SnGanShape& shape);

// `shape` has passed check().
class Generator {
 public:
  explicit Generator(const SnGanShape& shape);
  const ArrayList& arrays() const { return arrays_; }
  // Noise [B, noise] and labels [B] (i64; not read without classes) -> pictures
  // [B, channels, side, side] in [-1, 1].
  at::Tensor forward(const Pass& pass, const at::Tensor& noise, const at::Tensor& labels) const;

 private:
  // Batch norm, ReLU, double, 3x3, batch norm, ReLU, 3x3; the shortcut is doubled and projected.
  struct Block {
    BatchNorm first_norm;
    Convolution first;
    BatchNorm second_norm;
    Convolution second, shortcut;
  };

  ArrayList arrays_;
  std::int64_t top_ = 0;  // channels of the 4x4 beginning
  std::optional<Linear> input_;
  std::vector<Block> blocks_;
  std::optional<BatchNorm> last_norm_;
  std::optional<Convolution> output_;
};

// Every layer's weight is spectrally normalised.
class Discriminator {
 public:
  explicit Discriminator(const SnGanShape& shape);
  const ArrayList& arrays() const { return arrays_; }
  // Pictures [B, channels, side, side] in [-1, 1] and labels -> scores [B].
  at::Tensor forward(const Pass& pass, const at::Tensor& x, const at::Tensor& labels) const;

 private:
  // ReLU, 3x3, ReLU, 3x3, halved by averaging or not, as its shortcut is. The first block has no
  // ReLU before its first convolution.
  struct Block {
    Convolution first, second;
    std::optional<Convolution> shortcut;
    bool is_first = false;
  };
  at::Tensor apply(const Block& block, const Pass& pass, const at::Tensor& x) const;

  ArrayList arrays_;
  std::vector<Block> blocks_;
  std::optional<Linear> score_;
  std::optional<Embedding> classes_;
};

// Hinge losses: means over the batch.
at::Tensor discriminator_loss(const at::Tensor& real_scores, const at::Tensor& fake_scores);
at::Tensor generator_loss(const at::Tensor& fake_scores);

}  // namespace troupe::models
