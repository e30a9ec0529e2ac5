#include "learners/gan/sampler.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "learners/gan/gan_replica.hpp"
#include "learners/supervised/set_arrays.hpp"
#include "models/kept_memory.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

class GeneratorSampler final : public Sampler {
 public:
  GeneratorSampler(const GanOptions& options, const PictureSpec& pictures, int threads)
      : model_(shape_of(options, pictures)),
        noise_(options.noise),
        classes_(pictures.classes),
        threads_(threads),
        arrays_(make_arrays(model_)) {}

  Result<void> set_parameters(const models::ParameterSet& set) override {
    return set_arrays(set, model_.arrays(), arrays_);
  }

  Result<std::vector<std::uint8_t>> sample(std::span<const float> noise,
                                           std::span<const std::int64_t> labels) override {
    const auto count = static_cast<std::int64_t>(labels.size());
    if (count < 1 || noise.size() != labels.size() * static_cast<std::size_t>(noise_))
      return fail(ErrorCode::kInvalidArgument,
                  "noise and labels of other sizes than the network's");
    for (const std::int64_t label : labels)
      if (label < 0 || label >= classes_)
        return fail(ErrorCode::kInvalidArgument, "label " + std::to_string(label) + " is none of " +
                                                     std::to_string(classes_) + " classes");
    at::set_num_threads(threads_);  // of the calling thread
    const at::NoGradGuard without_gradient;
    const models::Pass pass{arrays_.parameters().constants(), arrays_.buffers()};
    const at::Tensor z = at::from_blob(const_cast<float*>(noise.data()), {count, noise_});
    const at::Tensor y =
        at::from_blob(const_cast<std::int64_t*>(labels.data()), {count}, at::kLong);
    const at::Tensor pixels = ((model_.forward(pass, z, y) + 1) * 128)
                                  .clamp(0, 255)
                                  .to(at::kByte)
                                  .permute({0, 2, 3, 1})
                                  .contiguous();
    const auto* values = pixels.const_data_ptr<std::uint8_t>();
    return std::vector<std::uint8_t>(values, values + pixels.numel());
  }

 private:
  static models::ImageArrays make_arrays(const models::Generator& model) {
    Random random(0);  // until set_parameters
    return {model.arrays(), random};
  }

  const models::Generator model_;
  const std::int64_t noise_, classes_;
  const int threads_;
  models::ImageArrays arrays_;
};

}  // namespace

Result<std::unique_ptr<Sampler>> make_sampler(const GanOptions& options,
                                              const PictureSpec& pictures, int threads) {
  models::keep_tensor_memory();
  if (auto good = check(shape_of(options, pictures)); !good) return tl::unexpected(good.error());
  return std::make_unique<GeneratorSampler>(options, pictures, threads);
}

}  // namespace troupe::learners

extern "C" __attribute__((visibility("default")))
troupe::Result<std::unique_ptr<troupe::learners::Sampler>>
troupe_make_sampler(const troupe::learners::GanOptions& options,
                    const troupe::learners::PictureSpec& pictures, int threads) {
  return troupe::learners::make_sampler(options, pictures, threads);
}
