// Implements the optimizer.
#include "learners/replicas/fused_adam.hpp"

#include <torch/serialize/archive.h>

#include <algorithm>
#include <cmath>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

std::span<float> floats(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

struct NoOptions final : torch::optim::OptimizerCloneableOptions<NoOptions> {};

class FusedAdam final : public torch::optim::Optimizer {
 public:
  // `rates`: of each parameter.
  FusedAdam(const Tensors& parameters, const AdamOptions& options, const std::vector<double>& rates,
            double gradient_clip)
      : Optimizer(parameters, std::make_unique<NoOptions>()),
        options_(parameters.size(), options),
        gradient_clip_(gradient_clip) {
    if (rates.size() != parameters.size())
      throw std::invalid_argument("Fused Adam needs a learning rate for each parameter.");
    for (std::size_t i = 0; i < rates.size(); ++i) options_[i].learning_rate = rates[i];
    for (const at::Tensor& parameter : parameters) {
      if (parameter.scalar_type() != at::kFloat || !parameter.device().is_cpu() ||
          !parameter.is_contiguous())
        throw std::invalid_argument("Fused Adam is for contiguous f32 parameters on the CPU.");
      const auto size = static_cast<std::size_t>(parameter.numel());
      first_.emplace_back(size);
      second_.emplace_back(size);
    }
  }

  at::Tensor step(LossClosure closure) override {
    at::Tensor loss;
    if (closure) loss = closure();
    ++steps_;
    const Tensors& all = param_groups().front().params();
    double squares = 0;
    if (gradient_clip_ > 0)
      for (const at::Tensor& parameter : all)
        if (parameter.grad().defined()) squares += squared_norm(floats(parameter.grad()));
    const double factor = clip_factor(std::sqrt(squares), gradient_clip_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const at::Tensor& parameter = all[i];
      if (parameter.grad().defined())
        adam_update(options_[i], steps_, factor, floats(parameter), floats(parameter.grad()),
                    first_[i], second_[i]);
    }
    return loss;
  }

  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("steps", at::scalar_tensor(static_cast<std::int64_t>(steps_), at::kLong));
    for (std::size_t i = 0; i < first_.size(); ++i) {
      archive.write("first_" + std::to_string(i), copy_of(first_[i]));
      archive.write("second_" + std::to_string(i), copy_of(second_[i]));
    }
  }
  void load(torch::serialize::InputArchive& archive) override {
    at::Tensor steps;
    archive.read("steps", steps);
    for (std::size_t i = 0; i < first_.size(); ++i) {
      read(archive, "first_" + std::to_string(i), first_[i]);
      read(archive, "second_" + std::to_string(i), second_[i]);
    }
    steps_ = static_cast<std::uint64_t>(steps.item<std::int64_t>());
  }

 private:
  static at::Tensor copy_of(const std::vector<float>& values) {
    const auto size = static_cast<std::int64_t>(values.size());
    return at::from_blob(const_cast<float*>(values.data()), {size}, at::kFloat).clone();
  }
  static void read(torch::serialize::InputArchive& archive, const std::string& key,
                   std::vector<float>& values) {
    at::Tensor tensor;
    archive.read(key, tensor);
    if (tensor.numel() != static_cast<std::int64_t>(values.size()))
      throw std::invalid_argument(key + " of fused Adam has another size.");
    std::copy_n(tensor.contiguous().const_data_ptr<float>(), values.size(), values.begin());
  }

  std::vector<AdamOptions> options_;  // of each parameter
  double gradient_clip_;
  std::uint64_t steps_ = 0;
  std::vector<std::vector<float>> first_, second_;
};

}  // namespace

OptimizerFactory fused_adam(const AdamOptions& options, double gradient_clip) {
  return [=](const Tensors& parameters) {
    const std::vector<double> rates(parameters.size(), options.learning_rate);
    return std::make_unique<FusedAdam>(parameters, options, rates, gradient_clip);
  };
}

OptimizerFactory fused_adam(const AdamOptions& options, const std::vector<double>& rates) {
  return [=](const Tensors& parameters) {
    return std::make_unique<FusedAdam>(parameters, options, rates, 0);
  };
}

}  // namespace troupe::learners
