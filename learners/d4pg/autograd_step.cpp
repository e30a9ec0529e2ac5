// Implements the autograd step.
#include "learners/d4pg/autograd_step.hpp"

#include <c10/core/GradMode.h>

#include "models/categorical.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

models::CategoricalSupport support_of(const D4pgOptions& options) {
  return {options.v_min, options.v_max, options.atoms};
}

at::Tensor critic_logits(const D4pgModel& model, const std::vector<at::Tensor>& parameters,
                         const at::Tensor& observation, const at::Tensor& action) {
  return models::forward(model.critic, parameters, at::cat({observation, action}, 1));
}

void critic_gradient(const D4pgModel& model, D4pgNetworks& networks, const D4pgTensors& rows,
                     D4pgLosses& losses) {
  {
    const c10::NoGradGuard no_grad;
    const at::Tensor next_action =
        models::forward(model.policy, networks.target_policy.constants(), rows.next_observation);
    losses.next_probabilities = at::softmax(critic_logits(model, networks.target_critic.constants(),
                                                          rows.next_observation, next_action),
                                            1);
    losses.target = models::project(support_of(model.options), losses.next_probabilities,
                                    rows.reward, rows.discount);
  }
  const at::Tensor log_probabilities = at::log_softmax(
      critic_logits(model, networks.critic.parameters(), rows.observation, rows.action), 1);
  const at::Tensor cross_entropy = -(losses.target * log_probabilities).sum(1);
  const at::Tensor loss = (rows.weight * cross_entropy).sum() / rows.global_count;
  networks.critic.gradient().zero_();
  torch::autograd::backward({loss}, {});
  losses.prediction = log_probabilities.detach();
  losses.cross_entropy = cross_entropy.detach();
}

void policy_gradient(const D4pgModel& model, D4pgNetworks& networks, const D4pgTensors& rows,
                     D4pgLosses& losses) {
  const at::Tensor action =
      models::forward(model.policy, networks.policy.parameters(), rows.observation);
  const at::Tensor leaf = action.detach().requires_grad_(true);
  const at::Tensor probabilities =
      at::softmax(critic_logits(model, networks.critic.constants(), rows.observation, leaf), 1);
  const at::Tensor value =
      (probabilities * support_of(model.options).values(probabilities.options())).sum(1);
  losses.action_gradient = torch::autograd::grad({value.sum()}, {leaf})[0];
  losses.value = value.detach();
  const double limit = model.options.action_gradient_clip;
  const at::Tensor clipped =
      limit > 0 ? losses.action_gradient.clamp(-limit, limit) : losses.action_gradient;
  networks.policy.gradient().zero_();
  torch::autograd::backward({action}, {-clipped / rows.global_count});
}

class AutogradStep final : public D4pgStep {
 public:
  AutogradStep(const D4pgModel& model, D4pgNetworks& networks, const StepContext& context)
      : model_(model), networks_(networks), context_(context) {}

  const char* name() const override { return "autograd"; }

  Result<void> compute(const BatchRows& rows, StepOutputs& outputs) override {
    if (rows.count > context_.max_rows)
      return fail(ErrorCode::kInvalidArgument,
                  "The D4PG step was made for " + std::to_string(context_.max_rows) +
                      " rows and got " + std::to_string(rows.count) + ".");
    const D4pgTensors tensors = tensors_of(rows);
    const D4pgLosses losses = compute_gradients(model_, networks_, tensors);
    at::from_blob(outputs.item_loss.data(), {rows.count}, at::kFloat).copy_(losses.cross_entropy);
    outputs.critic_loss = sum(losses.cross_entropy * tensors.weight);
    outputs.policy_loss = -sum(losses.value);
    if (outputs.want_metrics) fill_metrics(tensors, losses, outputs);
    return {};
  }

 private:
  static double sum(const at::Tensor& values) { return values.sum(at::kDouble).item<double>(); }

  D4pgTensors tensors_of(const BatchRows& rows) const {
    const auto view = [&](const float* data, std::vector<std::int64_t> shape) {
      return at::from_blob(const_cast<float*>(data), shape, at::kFloat);
    };
    return {view(rows.observation, {rows.count, model_.observation}),
            view(rows.action, {rows.count, model_.action}),
            view(rows.reward, {rows.count}),
            view(rows.discount, {rows.count}),
            view(rows.next_observation, {rows.count, model_.observation}),
            view(rows.weight, {rows.count}),
            static_cast<double>(rows.global_count)};
  }

  void fill_metrics(const D4pgTensors& rows, const D4pgLosses& losses, StepOutputs& outputs) const {
    const models::CategoricalSupport support = support_of(model_.options);
    const at::Tensor atoms = support.values(rows.reward.options());
    outputs.q = sum(losses.prediction.exp() * atoms);
    outputs.target_q = sum(losses.target * atoms);
    outputs.clipped_mass =
        sum(models::mass_outside(support, losses.next_probabilities, rows.reward, rows.discount));
    const double limit = model_.options.action_gradient_clip;
    outputs.action_gradient_clipped =
        limit > 0 ? sum((losses.action_gradient.abs() > limit).to(at::kFloat)) : 0.0;
  }

  const D4pgModel& model_;
  D4pgNetworks& networks_;
  StepContext context_;
};

}  // namespace

D4pgLosses compute_gradients(const D4pgModel& model, D4pgNetworks& networks,
                             const D4pgTensors& rows) {
  D4pgLosses losses;
  critic_gradient(model, networks, rows, losses);
  policy_gradient(model, networks, rows, losses);
  return losses;
}

std::unique_ptr<D4pgStep> make_autograd_step(const D4pgModel& model, D4pgNetworks& networks,
                                             const StepContext& context) {
  return std::make_unique<AutogradStep>(model, networks, context);
}

}  // namespace troupe::learners
