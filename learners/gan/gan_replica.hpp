// One replica of SN-GAN: two networks with an optimizer each, and the step function of each.
// Belongs to its thread; the learner touches it only between rounds of work.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "learners/gan/options.hpp"
#include "learners/replicas/context.hpp"
#include "learners/supervised/picture_rows.hpp"
#include "models/image/sngan.hpp"

namespace troupe::learners {

// Means over the global batches, equal on every replica.
struct GanTotals {
  double discriminator_loss = 0, generator_loss = 0;  // the former of the last step
  double real_score = 0, fake_score = 0;              // likewise
  double learning_rate = 0;
};

class GanReplica {
 public:
  // One network with its optimizer's state.
  struct Side {
    models::ImageArrays arrays;
    std::vector<float> first, second;  // Adam's moments
    std::uint64_t steps = 0;

    struct Saved {
      at::Tensor values;
      std::vector<at::Tensor> buffers;
      std::vector<float> first, second;
      std::uint64_t steps = 0;
    };
    Saved save() const;
    void restore(Saved saved);
  };

  // Initialises from `seed`, alike on every replica. All arguments outlive it.
  GanReplica(const models::Generator& generator, const models::Discriminator& discriminator,
             const GanOptions& options, const PictureSpec& pictures, std::uint64_t seed);

  // `discriminator_steps` steps on as many parts of `rows`, which are this replica's and may be
  // none, and one of the generator; a step that no replica has rows for is left out. kNotFinite:
  // nothing was changed on any replica.
  Result<GanTotals> update(ReplicaContext& context, const PictureRows& rows);

  std::uint64_t updates() const { return generator_.steps; }
  // Of both networks, their buffers included where replicas share them, and moments.
  std::uint64_t state_hash() const;
  Side& generator() { return generator_; }
  Side& discriminator() { return discriminator_; }

 private:
  struct Fakes {
    at::Tensor pictures, labels;
  };
  Fakes generate(const ReplicaContext& context, std::int64_t count, std::string_view purpose,
                 std::uint64_t number);
  Result<void> steps(ReplicaContext& context, const PictureRows& rows, GanTotals& totals);
  Result<void> discriminator_step(ReplicaContext& context, const PictureRows& rows,
                                  std::uint64_t number, GanTotals& totals);
  // What the discriminator says of the rows and as many fakes: loss and mean scores.
  std::vector<double> judge(const ReplicaContext& context, const PictureRows& rows,
                            std::uint64_t number);
  void move_spectral_norms();
  Result<void> generator_step(ReplicaContext& context, GanTotals& totals);
  // Sums gradient and numbers over the replicas, and applies the former.
  Result<void> apply(ReplicaContext& context, Side& side, double rate, std::vector<double>& numbers,
                     const char* what);

  const models::Generator& generator_model_;
  const models::Discriminator& discriminator_model_;
  const GanOptions& options_;
  const PictureSpec pictures_;
  const std::uint64_t seed_;
  Side generator_, discriminator_;
};

// Noise [count, width] and labels [count] of a stream: equal seeds, equal bits.
struct GanInputs {
  at::Tensor noise, labels;
};
GanInputs gan_inputs(std::int64_t count, std::int64_t width, std::int64_t classes,
                     std::uint64_t seed);

models::SnGanShape shape_of(const GanOptions& options, const PictureSpec& pictures);

}  // namespace troupe::learners
