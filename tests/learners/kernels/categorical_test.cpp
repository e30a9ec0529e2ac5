// The categorical critic's arithmetic: closed forms, and a slow projection in double.
#include "learners/kernels/categorical.hpp"

#include <algorithm>
#include <limits>

#include "tests/learners/kernels/matrices.hpp"

namespace troupe::learners::kernels {
namespace {

constexpr std::int64_t kItems = kPanel + 5;

std::vector<double> softmax_of(const Matrix& logits, std::int64_t item) {
  std::vector<double> p;
  double total = 0;
  for (std::int64_t atom = 0; atom < logits.rows; ++atom) {
    p.push_back(std::exp(static_cast<double>(logits.at(atom, item))));
    total += p.back();
  }
  for (double& value : p) value /= total;
  return p;
}

// Each pair of atoms in turn, as the paper states it.
std::vector<double> projection_of(const std::vector<double>& p, double low, double high,
                                  double reward, double discount) {
  const auto atoms = static_cast<double>(p.size());
  const double step = (high - low) / (atoms - 1);
  std::vector<double> result(p.size());
  for (std::size_t i = 0; i < p.size(); ++i)
    for (std::size_t j = 0; j < p.size(); ++j) {
      const double moved =
          std::clamp(reward + discount * (low + static_cast<double>(j) * step), low, high);
      const double distance = std::fabs(moved - (low + static_cast<double>(i) * step)) / step;
      result[i] += p[j] * std::max(0.0, 1 - distance);
    }
  return result;
}

struct Items {
  explicit Items(Arena& arena)
      : reward(arena.floats(2 * kPanel)),
        discount(arena.floats(2 * kPanel)),
        outside(arena.floats(2 * kPanel)) {}
  float *reward, *discount, *outside;
};

class CategoricalTest : public testing::TestWithParam<std::int64_t> {};

TEST_P(CategoricalTest, ProjectionKeepsMassAndAgreesWithTheSlowOne) {
  const std::int64_t atoms = GetParam();
  const double low = -2, high = 3;
  const Support support(low, high, atoms);
  Random random(1);
  Arena arena;
  Matrix logits = random_matrix(atoms, kItems, random);
  for (float& value : logits.values) value *= 4;
  const Panels probabilities = to_panels(logits, arena), target = arena.panels(atoms, kItems);
  Items items(arena);
  for (std::int64_t item = 0; item < kItems; ++item) {
    items.reward[item] = static_cast<float>(random.uniform(-4, 4));
    items.discount[item] = item % 4 == 0 ? 0 : static_cast<float>(random.uniform(0, 1));
  }
  items.reward[0] = static_cast<float>(high);  // on the last atom
  items.reward[4] = static_cast<float>(low);   // on the first
  softmax(probabilities, nullptr, {0, 2});
  project(support, probabilities, items.reward, items.discount, target, items.outside, {0, 2});
  for (std::int64_t item = 0; item < kItems; ++item) {
    const std::vector<double> p = softmax_of(logits, item);
    const std::vector<double> wanted =
        projection_of(p, low, high, items.reward[item], items.discount[item]);
    double mass = 0, outside = 0;
    for (std::int64_t atom = 0; atom < atoms; ++atom) {
      const auto at = static_cast<std::size_t>(atom);
      ASSERT_NEAR(probabilities.at(atom, item), p[at], 1e-6);
      ASSERT_NEAR(target.at(atom, item), wanted[at], 1e-5) << "item " << item << " atom " << atom;
      ASSERT_GE(target.at(atom, item), -1e-7);
      mass += target.at(atom, item);
      const double moved =
          static_cast<double>(items.reward[item]) +
          static_cast<double>(items.discount[item]) * static_cast<double>(support.values()[at]);
      outside += moved < low || moved > high ? p[at] : 0;
    }
    ASSERT_NEAR(mass, 1, 1e-6);
    ASSERT_NEAR(items.outside[item], outside, 1e-5);
  }
}

TEST_P(CategoricalTest, CrossEntropyAndItsGradientFollowTheDefinition) {
  const std::int64_t atoms = GetParam();
  const Support support(-1, 1, atoms);
  Random random(2);
  Arena arena;
  const Matrix logits = random_matrix(atoms, kItems, random);
  const Matrix target_logits = random_matrix(atoms, kItems, random);
  const Panels target = to_panels(target_logits, arena), gradient = arena.panels(atoms, kItems);
  softmax(target, nullptr, {0, 2});
  float *scale = arena.floats(2 * kPanel), *loss = arena.floats(2 * kPanel),
        *mean = arena.floats(2 * kPanel);
  for (std::int64_t item = 0; item < kItems; ++item)
    scale[item] = static_cast<float>(random.uniform(0, 2));
  cross_entropy(support, target, scale, to_panels(logits, arena), gradient, loss, mean, {0, 2});
  for (std::int64_t item = 0; item < kItems; ++item) {
    const std::vector<double> p = softmax_of(logits, item), m = softmax_of(target_logits, item);
    double entropy = 0, average = 0;
    for (std::int64_t atom = 0; atom < atoms; ++atom) {
      const auto at = static_cast<std::size_t>(atom);
      entropy -= m[at] * std::log(p[at]);
      average += p[at] * static_cast<double>(support.values()[at]);
      ASSERT_NEAR(gradient.at(atom, item), static_cast<double>(scale[item]) * (p[at] - m[at]),
                  2e-6);
    }
    ASSERT_NEAR(loss[item], entropy, 1e-5);
    ASSERT_NEAR(mean[item], average, 1e-6);
  }
  for (std::int64_t item = kItems; item < 2 * kPanel; ++item)
    for (std::int64_t atom = 0; atom < atoms; ++atom) ASSERT_EQ(gradient.at(atom, item), 0);
}

TEST_P(CategoricalTest, MeanGradientIsTheMeansDerivative) {
  const std::int64_t atoms = GetParam();
  const Support support(-1, 4, atoms);
  Random random(3);
  Arena arena;
  Matrix logits = random_matrix(atoms, kItems, random);
  const Panels gradient = arena.panels(atoms, kItems);
  float *scale = arena.floats(2 * kPanel), *mean = arena.floats(2 * kPanel);
  std::fill_n(scale, kItems, 1.0F);
  mean_gradient(support, scale, to_panels(logits, arena), gradient, mean, {0, 2});
  const auto mean_of = [&](std::int64_t item) {
    const std::vector<double> p = softmax_of(logits, item);
    double sum = 0;
    for (std::size_t atom = 0; atom < p.size(); ++atom)
      sum += p[atom] * static_cast<double>(support.values()[atom]);
    return sum;
  };
  for (std::int64_t item = 0; item < kItems; item += 5) {
    ASSERT_NEAR(mean[item], mean_of(item), 2e-6);
    for (std::int64_t atom = 0; atom < atoms; ++atom) {
      const float value = logits.at(atom, item), step = 1.0F / 64;
      logits.at(atom, item) = value + step;
      const double above = mean_of(item);
      logits.at(atom, item) = value - step;
      const double below = mean_of(item);
      logits.at(atom, item) = value;
      ASSERT_NEAR(gradient.at(atom, item), (above - below) / (2 * static_cast<double>(step)), 2e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Atoms, CategoricalTest, testing::Values(2, 3, 11, 51));

TEST(Categorical, ARewardThatIsNotANumberMakesTheLossNotANumber) {
  const Support support(-1, 1, 5);
  Arena arena;
  const Panels probabilities = arena.panels(5, kPanel), target = arena.panels(5, kPanel);
  const Panels gradient = arena.panels(5, kPanel);
  softmax(probabilities, nullptr, {0, 1});
  Items items(arena);
  items.reward[2] = std::numeric_limits<float>::quiet_NaN();
  project(support, probabilities, items.reward, items.discount, target, items.outside, {0, 1});
  float *scale = arena.floats(kPanel), *loss = arena.floats(kPanel);
  cross_entropy(support, target, scale, probabilities, gradient, loss, nullptr, {0, 1});
  EXPECT_TRUE(std::isnan(loss[2]));
  EXPECT_FALSE(std::isnan(loss[1]));
}

TEST(Categorical, HugeLogitsDoNotOverflow) {
  Arena arena;
  Matrix logits(3, 1);
  logits.at(0, 0) = 1e30F;
  logits.at(1, 0) = 1e30F;
  logits.at(2, 0) = -1e30F;
  const Panels p = to_panels(logits, arena);
  softmax(p, nullptr, {0, 1});
  EXPECT_NEAR(p.at(0, 0), 0.5, 1e-6);
  EXPECT_NEAR(p.at(2, 0), 0, 1e-30);
}

}  // namespace
}  // namespace troupe::learners::kernels
