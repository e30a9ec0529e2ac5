// D4PG's gradients in double: against finite differences, against a slow statement of the loss, and
// split over replicas.
#include <gtest/gtest.h>

#include <cmath>

#include "learners/d4pg/autograd_step.hpp"
#include "models/categorical.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

constexpr std::int64_t kRows = 6, kObservation = 3, kAction = 2;

D4pgModel model_of(bool layer_norm, double clip = 0) {
  D4pgOptions options;
  options.policy = {5, 4};
  options.critic = {6, 5};
  options.atoms = 7;
  options.v_min = -2;
  options.v_max = 3;
  options.layer_norm = layer_norm;
  options.action_gradient_clip = clip;
  return make_d4pg_model(kObservation, kAction, options);
}

at::Tensor random(std::vector<std::int64_t> shape, Random& generator, double low = -1,
                  double high = 1) {
  at::Tensor values = at::empty(shape, at::kDouble);
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<double>()[i] = generator.uniform(low, high);
  return values;
}

struct Setting {
  explicit Setting(const D4pgModel& model_in, std::uint64_t seed = 1)
      : model(model_in), networks(model, at::kDouble) {
    Random generator(seed);
    for (const models::FlatParameters* network :
         {&networks.policy, &networks.critic, &networks.target_policy, &networks.target_critic})
      for (const at::Tensor& array : network->constants())
        array.copy_(random(array.sizes().vec(), generator));
    rows = {random({kRows, kObservation}, generator),
            random({kRows, kAction}, generator),
            random({kRows}, generator),
            random({kRows}, generator, 0, 1),
            random({kRows, kObservation}, generator),
            random({kRows}, generator, 0.2, 1),
            static_cast<double>(kRows)};
  }
  D4pgModel model;
  D4pgNetworks networks;
  D4pgTensors rows;
};

at::Tensor atoms_of(const D4pgModel& model) {
  return at::linspace(model.options.v_min, model.options.v_max, model.options.atoms, at::kDouble);
}

at::Tensor logits(const Setting& s, const models::FlatParameters& critic, const at::Tensor& o,
                  const at::Tensor& a) {
  return models::forward(s.model.critic, critic.constants(), at::cat({o, a}, 1));
}

// Loss of the critic and minus the mean value at the policy's actions, stated directly.
double critic_loss(const Setting& s) {
  const D4pgTensors& r = s.rows;
  const at::Tensor next =
      models::forward(s.model.policy, s.networks.target_policy.constants(), r.next_observation);
  const at::Tensor target =
      models::project({s.model.options.v_min, s.model.options.v_max, s.model.options.atoms},
                      at::softmax(logits(s, s.networks.target_critic, r.next_observation, next), 1),
                      r.reward, r.discount);
  const at::Tensor p = at::softmax(logits(s, s.networks.critic, r.observation, r.action), 1);
  double loss = 0;
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < s.model.options.atoms; ++j)
      loss -= r.weight[i].item<double>() * target[i][j].item<double>() *
              std::log(p[i][j].item<double>()) / r.global_count;
  return loss;
}

double policy_loss(const Setting& s) {
  const at::Tensor action =
      models::forward(s.model.policy, s.networks.policy.constants(), s.rows.observation);
  const at::Tensor p = at::softmax(logits(s, s.networks.critic, s.rows.observation, action), 1);
  return -(p * atoms_of(s.model)).sum().item<double>() / s.rows.global_count;
}

void expect_finite_differences(Setting& s, const models::FlatParameters& network,
                               double (*loss)(const Setting&)) {
  constexpr double kStep = 1e-5;
  double largest = 0;
  for (const models::Segment& segment : network.layout().segments)
    for (std::int64_t i = segment.offset; i < segment.offset + segment.elements; ++i) {
      double& parameter = network.values().mutable_data_ptr<double>()[i];
      const double kept = parameter;
      parameter = kept + kStep;
      const double above = loss(s);
      parameter = kept - kStep;
      const double below = loss(s);
      parameter = kept;
      const double gradient = network.gradient()[i].item<double>();
      largest = std::max(largest, std::abs(gradient));
      ASSERT_NEAR(gradient, (above - below) / (2 * kStep), 1e-7) << segment.name << " " << i;
    }
  EXPECT_GT(largest, 1e-3);
}

TEST(D4pgGradient, OfTheCriticAgreesWithFiniteDifferences) {
  for (const bool layer_norm : {true, false}) {
    Setting s(model_of(layer_norm));
    compute_gradients(s.model, s.networks, s.rows);
    expect_finite_differences(s, s.networks.critic, critic_loss);
  }
}

TEST(D4pgGradient, OfThePolicyAgreesWithFiniteDifferences) {
  for (const bool layer_norm : {true, false}) {
    Setting s(model_of(layer_norm));
    compute_gradients(s.model, s.networks, s.rows);
    expect_finite_differences(s, s.networks.policy, policy_loss);
  }
}

TEST(D4pgGradient, ReportsTheLossesThatItDifferentiates) {
  Setting s(model_of(true));
  const D4pgLosses losses = compute_gradients(s.model, s.networks, s.rows);
  EXPECT_NEAR((losses.cross_entropy * s.rows.weight).mean().item<double>(), critic_loss(s), 1e-12);
  EXPECT_NEAR(-losses.value.mean().item<double>(), policy_loss(s), 1e-12);
}

TEST(D4pgGradient, OverwritesWhatWasThere) {
  Setting s(model_of(true));
  compute_gradients(s.model, s.networks, s.rows);
  const at::Tensor critic = s.networks.critic.gradient().clone();
  const at::Tensor policy = s.networks.policy.gradient().clone();
  compute_gradients(s.model, s.networks, s.rows);
  EXPECT_TRUE(s.networks.critic.gradient().equal(critic));
  EXPECT_TRUE(s.networks.policy.gradient().equal(policy));
}

TEST(D4pgGradient, ClipsEveryElementOfTheActionsGradientByItself) {
  // With clip c far below every |dQ/da| only signs are left, so half the clip gives half the
  // gradient.
  Setting tight(model_of(true, 1e-6)), half(model_of(true, 5e-7));
  const D4pgLosses losses = compute_gradients(tight.model, tight.networks, tight.rows);
  compute_gradients(half.model, half.networks, half.rows);
  ASSERT_GT(losses.action_gradient.abs().min().item<double>(), 1e-6);
  EXPECT_TRUE(at::allclose(half.networks.policy.gradient() * 2, tight.networks.policy.gradient()));
  // A clip above every element changes nothing.
  Setting wide(model_of(true, 1e6)), none(model_of(true));
  compute_gradients(wide.model, wide.networks, wide.rows);
  compute_gradients(none.model, none.networks, none.rows);
  EXPECT_TRUE(wide.networks.policy.gradient().equal(none.networks.policy.gradient()));
}

TEST(D4pgGradient, OfTwoHalvesAddsUpToThatOfTheWhole) {
  Setting whole(model_of(true)), part(model_of(true));
  compute_gradients(whole.model, whole.networks, whole.rows);
  at::Tensor critic = at::zeros_like(whole.networks.critic.gradient());
  at::Tensor policy = at::zeros_like(whole.networks.policy.gradient());
  for (const std::int64_t first : {std::int64_t{0}, kRows / 2}) {
    const auto half = [&](const at::Tensor& t) { return t.narrow(0, first, kRows / 2); };
    const D4pgTensors& r = whole.rows;
    compute_gradients(part.model, part.networks,
                      {half(r.observation), half(r.action), half(r.reward), half(r.discount),
                       half(r.next_observation), half(r.weight), r.global_count});
    critic += part.networks.critic.gradient();
    policy += part.networks.policy.gradient();
  }
  EXPECT_LE((critic - whole.networks.critic.gradient()).abs().max().item<double>(), 1e-9);
  EXPECT_LE((policy - whole.networks.policy.gradient()).abs().max().item<double>(), 1e-9);
}

}  // namespace
}  // namespace troupe::learners
