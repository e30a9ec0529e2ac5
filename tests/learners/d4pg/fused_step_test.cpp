// The fused step against the autograd step in double: gradients of both networks and every reported
// sum, over the shapes that networks can take; and bitwise equality over thread counts.
#include "learners/d4pg/fused_step.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <string>

#include "learners/d4pg/autograd_step.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

struct Case {
  std::string name;
  std::int64_t observation, action, rows;
  std::vector<std::int64_t> policy, critic;
  std::int64_t atoms = 11;
  bool layer_norm = true;
  double action_gradient_clip = 0;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }  // googletest's own spelling

D4pgModel model_of(const Case& c) {
  D4pgOptions options;
  options.policy = c.policy;
  options.critic = c.critic;
  options.atoms = c.atoms;
  options.v_min = -3;
  options.v_max = 5;
  options.layer_norm = c.layer_norm;
  options.action_gradient_clip = c.action_gradient_clip;
  return make_d4pg_model(c.observation, c.action, options);
}

// Networks with random values everywhere, scaled so that activations stay of order one, and rows.
class Setting {
 public:
  explicit Setting(const Case& c, std::uint64_t seed = 1)
      : model(model_of(c)), networks(model), random_(seed) {
    at::set_num_threads(1);  // the oracle's small operations lose by more
    randomise(model.policy_layout, networks.policy);
    randomise(model.policy_layout, networks.target_policy);
    randomise(model.critic_layout, networks.critic);
    randomise(model.critic_layout, networks.target_critic);
    const std::int64_t n = c.rows;
    observation_ = draw(n * c.observation, -1, 1);
    action_ = draw(n * c.action, -1, 1);
    reward_ = draw(n, -2, 2);
    discount_ = draw(n, 0, 1);
    discount_[0] = 0;
    next_ = draw(n * c.observation, -1, 1);
    weight_ = draw(n, 0.2, 1);
    rows = {.count = n,
            .global_count = 2 * n,  // as with two replicas
            .observation = observation_.data(),
            .action = action_.data(),
            .reward = reward_.data(),
            .discount = discount_.data(),
            .next_observation = next_.data(),
            .weight = weight_.data()};
  }

  D4pgNetworks in_double() const {
    D4pgNetworks result(model, at::kDouble);
    result.policy.values().copy_(networks.policy.values());
    result.critic.values().copy_(networks.critic.values());
    result.target_policy.values().copy_(networks.target_policy.values());
    result.target_critic.values().copy_(networks.target_critic.values());
    return result;
  }

  D4pgTensors tensors() const {
    const auto tensor = [&](const std::vector<float>& values, std::int64_t width) {
      const at::Tensor all = at::tensor(values, at::kFloat).to(at::kDouble);
      return width == 0 ? all : all.view({rows.count, width});
    };
    return {.observation = tensor(observation_, model.observation),
            .action = tensor(action_, model.action),
            .reward = tensor(reward_, 0),
            .discount = tensor(discount_, 0),
            .next_observation = tensor(next_, model.observation),
            .weight = tensor(weight_, 0),
            .global_count = static_cast<double>(rows.global_count)};
  }

  void set_reward(std::size_t row, float value) { reward_[row] = value; }

  D4pgModel model;
  D4pgNetworks networks;
  BatchRows rows;

 private:
  std::vector<float> draw(std::int64_t count, double low, double high) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = static_cast<float>(random_.uniform(low, high));
    return values;
  }

  void randomise(const models::FlatLayout& layout, const models::FlatParameters& network) {
    float* values = network.values().mutable_data_ptr<float>();
    for (const models::Segment& segment : layout.segments) {
      const double scale =
          segment.shape.size() == 2 ? 1.7 / std::sqrt(static_cast<double>(segment.shape[1])) : 1;
      const std::vector<float> drawn = draw(segment.elements, -scale, scale);
      std::copy(drawn.begin(), drawn.end(), values + segment.offset);
    }
  }

  Random random_;
  std::vector<float> observation_, action_, reward_, discount_, next_, weight_;
};

double relative_distance(const at::Tensor& value, const at::Tensor& wanted) {
  const at::Tensor exact = wanted.to(at::kDouble);
  return ((value.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

class FusedStepTest : public testing::TestWithParam<Case> {};

TEST_P(FusedStepTest, GradientsAndSumsEqualThoseOfAutograd) {
  Setting setting(GetParam());
  const std::int64_t count = setting.rows.count;
  // Room for more rows than it gets, and for gradients of an earlier call.
  const auto step = make_fused_step(setting.model, setting.networks.buffers(),
                                    {.max_rows = count + 5, .threads = 1});
  setting.networks.policy.gradient().fill_(0);
  std::vector<float> losses(static_cast<std::size_t>(count));
  StepOutputs outputs{.want_metrics = true, .item_loss = losses};
  for (int call = 0; call < 2; ++call) ASSERT_TRUE(step->compute(setting.rows, outputs));

  D4pgNetworks exact = setting.in_double();
  const D4pgTensors rows = setting.tensors();
  const D4pgLosses wanted = compute_gradients(setting.model, exact, rows);
  EXPECT_LT(relative_distance(setting.networks.critic.gradient(), exact.critic.gradient()), 2e-5);
  EXPECT_LT(relative_distance(setting.networks.policy.gradient(), exact.policy.gradient()), 2e-4);

  const auto total = [](const at::Tensor& values) { return values.sum().item<double>(); };
  const double tolerance = 1e-4 * static_cast<double>(count);
  EXPECT_NEAR(outputs.critic_loss, total(rows.weight * wanted.cross_entropy), tolerance);
  EXPECT_NEAR(outputs.policy_loss, -total(wanted.value), tolerance);
  const at::Tensor z = at::linspace(setting.model.options.v_min, setting.model.options.v_max,
                                    setting.model.options.atoms, at::kDouble);
  EXPECT_NEAR(outputs.q, total(at::matmul(wanted.prediction.exp(), z)), tolerance);
  EXPECT_NEAR(outputs.target_q, total(at::matmul(wanted.target, z)), tolerance);
  const at::Tensor moved = rows.reward.unsqueeze(1) + rows.discount.unsqueeze(1) * z.unsqueeze(0);
  const at::Tensor lost =
      at::logical_or(moved.lt(setting.model.options.v_min), moved.gt(setting.model.options.v_max));
  EXPECT_NEAR(outputs.clipped_mass, total(wanted.next_probabilities * lost), tolerance);
  const double clip = setting.model.options.action_gradient_clip;
  EXPECT_EQ(outputs.action_gradient_clipped,
            clip > 0 ? total(wanted.action_gradient.abs().gt(clip)) : 0.0);
  for (std::int64_t row = 0; row < count; ++row)
    EXPECT_NEAR(losses[static_cast<std::size_t>(row)], wanted.cross_entropy[row].item<double>(),
                1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, FusedStepTest,
    testing::Values(Case{"Reference", 17, 6, 256, {256, 256, 256}, {512, 512, 256}, 51, true, 1},
                    Case{"Small", 5, 1, 256, {256, 256}, {256, 256}, 51, true, 1},
                    Case{"OneLayerOneRow", 3, 2, 1, {7}, {9}, 2, true, 0},
                    Case{"WithoutLayerNorm", 4, 3, 37, {20, 11}, {33, 18, 5}, 11, false, 0.05},
                    Case{"OneLayerWithoutLayerNorm", 4, 3, 16, {8}, {8}, 5, false, 0},
                    Case{"FourLayers", 9, 2, 50, {19, 8, 40, 3}, {30, 17, 24, 6}, 21, true, 0.02},
                    Case{"OddWidths", 1, 1, 129, {1, 65}, {300, 13}, 52, true, 0}),
    [](const auto& instance) { return instance.param.name; });

// The bits of both gradients after one step with `threads`.
std::vector<float> gradients(const Case& c, std::int64_t threads) {
  Setting setting(c);
  const auto step = make_fused_step(setting.model, setting.networks.buffers(),
                                    {.max_rows = c.rows, .threads = threads});
  StepOutputs outputs;
  EXPECT_TRUE(step->compute(setting.rows, outputs));
  std::vector<float> all;
  for (const at::Tensor& gradient :
       {setting.networks.policy.gradient(), setting.networks.critic.gradient()})
    all.insert(all.end(), gradient.const_data_ptr<float>(),
               gradient.const_data_ptr<float>() + gradient.numel());
  return all;
}

TEST(FusedStep, EveryThreadCountGivesTheSameBits) {
  for (const std::int64_t rows : {3, 100}) {
    const Case c{"", 5, 2, rows, {40, 30}, {50, 20, 9}, 21, true, 0.1};
    const std::vector<float> one = gradients(c, 1);
    for (const std::int64_t threads : {2, 3}) {
      const std::vector<float> more = gradients(c, threads);
      EXPECT_EQ(std::memcmp(one.data(), more.data(), one.size() * sizeof(float)), 0) << threads;
    }
  }
}

TEST(FusedStep, PaddingOfTheGradientsStaysZero) {
  const Case c{"", 5, 2, 20, {13, 7}, {11, 9}, 5, true, 0};
  Setting setting(c);
  const auto step = make_fused_step(setting.model, setting.networks.buffers(), {.max_rows = 20});
  StepOutputs outputs;
  ASSERT_TRUE(step->compute(setting.rows, outputs));
  std::vector<bool> used(static_cast<std::size_t>(setting.model.critic_layout.size));
  for (const models::Segment& segment : setting.model.critic_layout.segments)
    std::fill_n(used.begin() + segment.offset, segment.elements, true);
  const float* gradient = setting.networks.critic.gradient().const_data_ptr<float>();
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) {
      ASSERT_EQ(gradient[i], 0) << i;
    }
  }
}

TEST(FusedStep, ANotANumberRewardShowsInTheLoss) {
  Setting setting({"", 5, 2, 20, {13, 7}, {11, 9}, 5, true, 0});
  setting.set_reward(7, std::numeric_limits<float>::quiet_NaN());
  const auto step = make_fused_step(setting.model, setting.networks.buffers(), {.max_rows = 20});
  StepOutputs outputs;
  ASSERT_TRUE(step->compute(setting.rows, outputs));
  EXPECT_TRUE(std::isnan(outputs.critic_loss));
}

TEST(FusedStep, MoreRowsThanItWasMadeForAreAnError) {
  Setting setting({"", 5, 2, 20, {13, 7}, {11, 9}, 5, true, 0});
  const auto step = make_fused_step(setting.model, setting.networks.buffers(), {.max_rows = 19});
  StepOutputs outputs;
  const Result<void> result = step->compute(setting.rows, outputs);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::learners
