#include "learners/d4pg/fused_step.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "learners/d4pg/fused_network.hpp"
#include "learners/kernels/categorical.hpp"
#include "learners/kernels/denormals.hpp"
#include "learners/kernels/team.hpp"

namespace troupe::learners {
namespace {

using kernels::kPanel;
using kernels::Panels;
using kernels::Range;

// Items that go through all networks together: enough that a block of weights fetched into the
// second cache is used many times, few enough that large batches keep their activations near.
constexpr std::int64_t kGroupPanels = 128 / kPanel;

// Features [first, first + count) of panels.
Panels features(const Panels& panels, std::int64_t first, std::int64_t count) {
  return {panels.data + first * kPanel, count, panels.stride};
}

class FusedStep final : public D4pgStep {
 public:
  FusedStep(const D4pgModel& model, const D4pgBuffers& buffers, const StepContext& context)
      : model_(model),
        buffers_(buffers),
        max_rows_(context.max_rows),
        support_(model.options.v_min, model.options.v_max, model.options.atoms),
        policy_(model.policy, model.policy_layout, -1, arena_),
        critic_(model.critic, model.critic_layout, model.observation, arena_),
        team_(static_cast<int>(context.threads)),
        work_([this](int member) { work(member); }) {
    make_passes();
    transposed_ = arena_.floats(team_.size() * kernels::kTransposedSize);
    for (float** items : {&reward_, &discount_, &critic_scale_, &ones_, &loss_, &q_, &policy_q_,
                          &outside_, &target_q_, &clipped_})
      *items = arena_.floats(kernels::panels_of(max_rows_) * kPanel);
  }

  const char* name() const override { return "fused"; }

  Result<void> compute(const BatchRows& rows, StepOutputs& outputs) override {
    if (rows.count > max_rows_)
      return fail(ErrorCode::kInvalidArgument, "the fused D4PG step was made for " +
                                                   std::to_string(max_rows_) + " rows and got " +
                                                   std::to_string(rows.count));
    rows_ = rows;
    want_metrics_ = outputs.want_metrics;
    panels_ = kernels::panels_of(rows.count);
    load_scalars();
    team_.run(work_);
    fill(outputs);
    return {};
  }

 private:
  void make_passes() {
    const std::int64_t inputs = model_.observation + model_.action;
    const Panels taken = arena_.panels(inputs, max_rows_);
    const Panels chosen = arena_.panels(inputs, max_rows_);
    const Panels next = arena_.panels(inputs, max_rows_);
    critic_pass_ = critic_.make_pass(PassUse::kWeightGradient, max_rows_, taken, {}, arena_);
    value_pass_ = critic_.make_pass(PassUse::kInputGradient, max_rows_, chosen, {}, arena_);
    target_pass_ = critic_.make_pass(PassUse::kForward, max_rows_, next, {}, arena_);
    // Policies write their actions straight into the critic's input.
    policy_pass_ =
        policy_.make_pass(PassUse::kWeightGradient, max_rows_,
                          features(taken, 0, model_.observation), action_of(chosen), arena_);
    target_policy_pass_ =
        policy_.make_pass(PassUse::kForward, max_rows_, features(next, 0, model_.observation),
                          action_of(next), arena_);
    target_ = arena_.panels(model_.options.atoms, max_rows_);
    action_gradient_ = arena_.panels(model_.action, max_rows_);
  }

  Panels action_of(const Panels& input) const {
    return features(input, model_.observation, model_.action);
  }

  // Per-item numbers; lanes past the last item get scale 0, so that they reach no sum.
  void load_scalars() {
    const auto count = static_cast<float>(rows_.global_count);
    for (std::int64_t item = 0; item < panels_ * kPanel; ++item) {
      const bool real = item < rows_.count;
      reward_[item] = real ? rows_.reward[item] : 0.0F;
      discount_[item] = real ? rows_.discount[item] : 0.0F;
      critic_scale_[item] = real ? rows_.weight[item] / count : 0.0F;
      ones_[item] = real ? 1.0F : 0.0F;
    }
  }

  // What each member of the team does.
  void work(int member) {
    const kernels::FlushDenormals flush;
    const int members = team_.size();
    policy_.pack(buffers_.policy.parameters, member, members);
    critic_.pack(buffers_.critic.parameters, member, members);
    team_.meet();
    const Range mine = kernels::part_of(panels_, member, members);
    for (std::int64_t first = mine.begin; first < mine.end; first += kGroupPanels) {
      const Range group{first, std::min(mine.end, first + kGroupPanels)};
      load_inputs(group);
      compute_target(group);
      critic_backward(group);
      policy_backward(group);
    }
    team_.meet();
    float* transposed = transposed_ + member * kernels::kTransposedSize;
    critic_.weight_gradient(critic_pass_, panels_, transposed, buffers_.critic.gradient, member,
                            members);
    policy_.weight_gradient(policy_pass_, panels_, transposed, buffers_.policy.gradient, member,
                            members);
  }

  void load_inputs(Range panels) {
    const std::int64_t observation = model_.observation, count = rows_.count;
    kernels::load_items(rows_.observation, observation, count, critic_pass_.input, 0, panels);
    kernels::load_items(rows_.observation, observation, count, value_pass_.input, 0, panels);
    kernels::load_items(rows_.next_observation, observation, count, target_pass_.input, 0, panels);
    kernels::load_items(rows_.action, model_.action, count, critic_pass_.input, observation,
                        panels);
  }

  void compute_target(Range panels) {
    policy_.forward(buffers_.policy.target, target_policy_pass_, panels);
    critic_.forward(buffers_.critic.target, target_pass_, panels);
    const Panels& logits = target_pass_.layers.back().output;
    kernels::softmax(logits, nullptr, panels);
    kernels::project(support_, logits, reward_, discount_, target_,
                     want_metrics_ ? outside_ : nullptr, panels);
    if (want_metrics_) kernels::mean_value(support_, target_, target_q_, panels);
  }

  void critic_backward(Range panels) {
    critic_.forward(buffers_.critic.parameters, critic_pass_, panels);
    kernels::cross_entropy(support_, target_, critic_scale_, critic_pass_.layers.back().output,
                           critic_pass_.output_gradient(), loss_, want_metrics_ ? q_ : nullptr,
                           panels);
    critic_.backward(buffers_.critic.parameters, critic_pass_, {}, panels);
  }

  void policy_backward(Range panels) {
    policy_.forward(buffers_.policy.parameters, policy_pass_, panels);
    critic_.forward(buffers_.critic.parameters, value_pass_, panels);
    kernels::mean_gradient(support_, ones_, value_pass_.layers.back().output,
                           value_pass_.output_gradient(), policy_q_, panels);
    critic_.backward(buffers_.critic.parameters, value_pass_, action_gradient_, panels);
    seed_policy(panels);
    policy_.backward(buffers_.policy.parameters, policy_pass_, {}, panels);
  }

  // From dQ/da to the gradient of the policy's loss by its output before the tanh.
  void seed_policy(Range panels) {
    const double clip = model_.options.action_gradient_clip;
    const float limit = clip > 0 ? static_cast<float>(clip) : INFINITY;
    const float scale = -1.0F / static_cast<float>(rows_.global_count);
    const Panels actions = action_of(value_pass_.input);
    const Panels& seed = policy_pass_.output_gradient();
    for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
      float* clipped = clipped_ + panel * kPanel;
      std::fill_n(clipped, kPanel, 0.0F);
      for (std::int64_t i = 0; i < model_.action * kPanel; ++i) {
        const float slope = action_gradient_.panel(panel)[i];
        const float action = actions.panel(panel)[i];
        clipped[i % kPanel] += std::fabs(slope) > limit ? 1.0F : 0.0F;
        // Written so that a slope that is not a number stays one.
        const float bounded = slope > limit ? limit : slope < -limit ? -limit : slope;
        seed.panel(panel)[i] = scale * bounded * (1.0F - action * action);
      }
    }
  }

  double total(const float* items) const {
    double sum = 0;
    for (std::int64_t item = 0; item < rows_.count; ++item) sum += static_cast<double>(items[item]);
    return sum;
  }

  void fill(StepOutputs& outputs) const {
    outputs.critic_loss = 0;
    for (std::int64_t item = 0; item < rows_.count; ++item)
      outputs.critic_loss +=
          static_cast<double>(rows_.weight[item]) * static_cast<double>(loss_[item]);
    outputs.policy_loss = -total(policy_q_);
    std::copy_n(
        loss_,
        std::min<std::size_t>(outputs.item_loss.size(), static_cast<std::size_t>(rows_.count)),
        outputs.item_loss.begin());
    if (!want_metrics_) return;
    outputs.q = total(q_);
    outputs.target_q = total(target_q_);
    outputs.clipped_mass = total(outside_);
    outputs.action_gradient_clipped = total(clipped_);
  }

  const D4pgModel& model_;
  const D4pgBuffers buffers_;
  const std::int64_t max_rows_;
  const kernels::Support support_;
  kernels::Arena arena_;
  const FusedNetwork policy_, critic_;
  FusedPass critic_pass_;  // critic(s, a): the cross-entropy
  FusedPass value_pass_;   // critic(s, policy(s)): the policy's loss
  FusedPass target_pass_;  // target critic(s', target policy(s'))
  FusedPass policy_pass_, target_policy_pass_;
  Panels target_, action_gradient_;
  float* transposed_ = nullptr;  // scratch of each member
  // Per item.
  float *reward_ = nullptr, *discount_ = nullptr, *critic_scale_ = nullptr, *ones_ = nullptr,
        *loss_ = nullptr, *q_ = nullptr, *policy_q_ = nullptr, *outside_ = nullptr,
        *target_q_ = nullptr, *clipped_ = nullptr;
  // Of the call in progress.
  BatchRows rows_;
  bool want_metrics_ = false;
  std::int64_t panels_ = 0;
  kernels::Team team_;
  const std::function<void(int)> work_;
};

}  // namespace

std::unique_ptr<D4pgStep> make_fused_step(const D4pgModel& model, const D4pgBuffers& buffers,
                                          const StepContext& context) {
  return std::make_unique<FusedStep>(model, buffers, context);
}

}  // namespace troupe::learners
