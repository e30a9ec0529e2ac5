// Properties of the categorical projection, and a slow double loop to compare with.
#include "models/categorical.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "envs/spec/random.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::models {
namespace {

using Rows = std::vector<std::vector<double>>;

struct Case {
  CategoricalSupport support;
  Rows probabilities;
  std::vector<double> reward, discount;
};

at::Tensor tensor(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

Rows projected(const Case& c, at::ScalarType type = at::kDouble) {
  std::vector<at::Tensor> rows;
  for (const std::vector<double>& row : c.probabilities) rows.push_back(tensor(row));
  const at::Tensor result = project(c.support, at::stack(rows).to(type), tensor(c.reward).to(type),
                                    tensor(c.discount).to(type))
                                .to(at::kDouble)
                                .contiguous();
  Rows values;
  for (std::int64_t i = 0; i < result.size(0); ++i) {
    const double* first = result.const_data_ptr<double>() + i * result.size(1);
    values.emplace_back(first, first + result.size(1));
  }
  return values;
}

double atom(const CategoricalSupport& support, std::size_t j) {
  return support.v_min + static_cast<double>(j) * support.spacing();
}

// Bellemare et al. 2017, algorithm 1.
std::vector<double> slow_projection(const Case& c, std::size_t row) {
  const CategoricalSupport& s = c.support;
  std::vector<double> result(static_cast<std::size_t>(s.atoms));
  for (std::size_t j = 0; j < result.size(); ++j) {
    const double value = std::clamp(c.reward[row] + c.discount[row] * atom(s, j), s.v_min, s.v_max);
    const double b =
        std::clamp((value - s.v_min) / s.spacing(), 0.0, static_cast<double>(s.atoms - 1));
    const double low = std::floor(b), high = std::ceil(b);
    const double mass = c.probabilities[row][j];
    result[static_cast<std::size_t>(low)] += low == high ? mass : mass * (high - b);
    if (low != high) result[static_cast<std::size_t>(high)] += mass * (b - low);
  }
  return result;
}

Case random_case(std::uint64_t seed, double largest_reward) {
  Random random(seed);
  Case c{.support = {-10, 30, 2 + static_cast<std::int64_t>(random.below(60))},
         .probabilities = {},
         .reward = {},
         .discount = {}};
  for (int row = 0; row < 8; ++row) {
    std::vector<double> p;
    double sum = 0;
    for (std::int64_t j = 0; j < c.support.atoms; ++j) sum += p.emplace_back(random.uniform());
    for (double& value : p) value /= sum;
    c.probabilities.push_back(p);
    c.reward.push_back(random.uniform(-largest_reward, largest_reward));
    c.discount.push_back(random.uniform());
  }
  return c;
}

double mean_of(const CategoricalSupport& support, const std::vector<double>& row) {
  double mean = 0;
  for (std::size_t j = 0; j < row.size(); ++j) mean += row[j] * atom(support, j);
  return mean;
}

TEST(Projection, AgreesWithTheSlowDoubleLoop) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Case c = random_case(seed, 60);
    const Rows rows = projected(c);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::vector<double> expected = slow_projection(c, i);
      for (std::size_t j = 0; j < expected.size(); ++j)
        ASSERT_NEAR(rows[i][j], expected[j], 1e-12) << seed << " " << i << " " << j;
    }
  }
}

TEST(Projection, KeepsTheMassInFloat) {
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    for (const std::vector<double>& row : projected(random_case(seed, 60), at::kFloat)) {
      double mass = 0;
      for (const double value : row) {
        EXPECT_GE(value, 0);
        mass += value;
      }
      EXPECT_NEAR(mass, 1, 1e-6);
    }
}

TEST(Projection, KeepsTheMeanInsideTheSupport) {
  Random random(1);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Case c = random_case(seed, 0);
    for (std::size_t i = 0; i < c.reward.size(); ++i)
      // Keeps r + d * [-10, 30] within [-10, 30].
      c.reward[i] = random.uniform(-10 * (1 - c.discount[i]), 30 * (1 - c.discount[i]));
    const Rows rows = projected(c);
    for (std::size_t i = 0; i < rows.size(); ++i)
      EXPECT_NEAR(mean_of(c.support, rows[i]),
                  c.reward[i] + c.discount[i] * mean_of(c.support, c.probabilities[i]), 1e-10);
  }
}

TEST(Projection, PutsARewardOnAnAtomThereAlone) {
  // Atoms -10, 0, 10, 20, 30; discount 0.
  Case c{.support = {-10, 30, 5}, .probabilities = {}, .reward = {}, .discount = {}};
  for (std::size_t j = 0; j < 5; ++j) {
    c.probabilities.push_back({0.2, 0.2, 0.2, 0.2, 0.2});
    c.reward.push_back(atom(c.support, j));
    c.discount.push_back(0);
  }
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const Rows rows = projected(c, type);
    for (std::size_t i = 0; i < 5; ++i)
      for (std::size_t j = 0; j < 5; ++j) EXPECT_NEAR(rows[i][j], i == j ? 1 : 0, 1e-6);
  }
}

TEST(Projection, ShiftsAPointMassByWholeAtomsExactly) {
  const Case c{
      .support = {-10, 30, 5}, .probabilities = {{0, 1, 0, 0, 0}}, .reward = {20}, .discount = {1}};
  EXPECT_EQ(projected(c)[0], (std::vector<double>{0, 0, 0, 1, 0}));
}

TEST(Projection, PutsWhatFallsOutsideOnTheEnds) {
  const Case c{.support = {-10, 30, 5},
               .probabilities = {{0.1, 0.2, 0.3, 0.2, 0.2}, {0.1, 0.2, 0.3, 0.2, 0.2}},
               .reward = {1000, -1000},
               .discount = {1, 1}};
  const Rows rows = projected(c);
  EXPECT_NEAR(rows[0].back(), 1, 1e-12);
  EXPECT_NEAR(rows[1].front(), 1, 1e-12);
}

TEST(Projection, OnTheSmallestSupportOfTwoAtomsSharesTheMass) {
  const Case c{.support = {0, 4, 2}, .probabilities = {{1, 0}}, .reward = {1}, .discount = {0.5}};
  EXPECT_EQ(projected(c)[0], (std::vector<double>{0.75, 0.25}));
}

TEST(Projection, MeasuresTheMassOutside) {
  const CategoricalSupport support{-10, 30, 5};
  const at::Tensor p = tensor({0.1, 0.2, 0.3, 0.2, 0.2}).unsqueeze(0);
  const auto outside = [&](double reward, double discount) {
    return mass_outside(support, p, tensor({reward}), tensor({discount})).item<double>();
  };
  EXPECT_NEAR(outside(0, 1), 0, 1e-12);
  EXPECT_NEAR(outside(10, 1), 0.2, 1e-12);
  EXPECT_NEAR(outside(-15, 1), 0.3, 1e-12);
  EXPECT_NEAR(outside(31, 0), 1, 1e-12);
}

TEST(Support, RefusesEndsThatAreNotOrderedOrNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [low, high] :
       {std::pair{1.0, 1.0}, {2.0, 1.0}, {0.0, infinity}, {std::nan(""), 1.0}}) {
    const auto support = make_support(low, high, 51);
    ASSERT_FALSE(support);
    EXPECT_NE(support.error().message.find("v_min"), std::string::npos);
  }
  EXPECT_TRUE(make_support(-1, 1, 51));
}

TEST(Support, RefusesOneAtom) { EXPECT_FALSE(make_support(-1, 1, 1)); }

}  // namespace
}  // namespace troupe::models
