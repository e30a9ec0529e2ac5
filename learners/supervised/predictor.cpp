#include "learners/supervised/predictor.hpp"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "learners/supervised/picture_input.hpp"
#include "learners/supervised/set_arrays.hpp"
#include "models/image/resnet.hpp"
#include "models/kept_memory.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

class ResNetPredictor final : public Predictor {
 public:
  ResNetPredictor(models::ResNet model, const ClassifierOptions& options,
                  const PictureSpec& pictures, int threads)
      : model_(std::move(model)),
        pictures_(pictures),
        threads_(threads),
        arrays_(make_arrays(model_)),
        input_(options, pictures.channels) {}

  Result<void> set_parameters(const models::ParameterSet& set) override {
    return set_arrays(set, model_.arrays(), arrays_);
  }

  Result<Outputs> outputs(std::span<const std::uint8_t> pixels) override {
    const auto picture =
        static_cast<std::size_t>(pictures_.side * pictures_.side * pictures_.channels);
    if (pixels.empty() || pixels.size() % picture != 0)
      return fail(ErrorCode::kInvalidArgument, std::to_string(pixels.size()) +
                                                   " bytes are no pictures of " +
                                                   std::to_string(picture) + " bytes each");
    at::set_num_threads(threads_);  // of the calling thread
    const at::NoGradGuard without_gradient;
    const models::Pass pass{arrays_.parameters().constants(), arrays_.buffers()};
    const auto count = static_cast<std::int64_t>(pixels.size() / picture);
    const at::Tensor features =
        model_.features(pass, input_(pixels.data(), count, pictures_.side)).contiguous();
    return Outputs{values_of(model_.classify(pass, features).contiguous()), values_of(features),
                   count};
  }

 private:
  static std::vector<float> values_of(const at::Tensor& tensor) {
    const float* values = tensor.const_data_ptr<float>();
    return {values, values + tensor.numel()};
  }

  static models::ImageArrays make_arrays(const models::ResNet& model) {
    Random random(0);  // until set_parameters
    return {model.arrays(), random};
  }

  const models::ResNet model_;
  const PictureSpec pictures_;
  const int threads_;
  models::ImageArrays arrays_;
  PictureInput input_;
};

}  // namespace

Result<std::unique_ptr<Predictor>> make_predictor(const ClassifierOptions& options,
                                                  const PictureSpec& pictures, int threads) {
  models::keep_tensor_memory();
  if (auto good = check(options, 1, pictures.channels); !good) return tl::unexpected(good.error());
  auto model = models::ResNet::create(shape_of(options, pictures));
  if (!model) return tl::unexpected(model.error());
  return std::make_unique<ResNetPredictor>(*std::move(model), options, pictures, threads);
}

}  // namespace troupe::learners

extern "C" __attribute__((visibility("default")))
troupe::Result<std::unique_ptr<troupe::learners::Predictor>>
troupe_make_predictor(const troupe::learners::ClassifierOptions& options,
                      const troupe::learners::PictureSpec& pictures, int threads) {
  return troupe::learners::make_predictor(options, pictures, threads);
}
