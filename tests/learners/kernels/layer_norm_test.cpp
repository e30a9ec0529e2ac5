// LayerNorm and tanh against the definition in double, and its gradient against differences of it.
#include "learners/kernels/layer_norm.hpp"

#include "tests/learners/kernels/matrices.hpp"

namespace troupe::learners::kernels {
namespace {

// tanh(scale * (x - mean) / sqrt(variance + epsilon) + shift) of one item.
std::vector<double> definition(const std::vector<double>& x, const Matrix& scale,
                               const Matrix& shift, double epsilon) {
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / static_cast<double>(x.size());
  for (const double value : x)
    variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
  std::vector<double> y;
  for (std::size_t f = 0; f < x.size(); ++f)
    y.push_back(std::tanh((x[f] - mean) / std::sqrt(variance + epsilon) *
                              scale.at(0, static_cast<std::int64_t>(f)) +
                          shift.at(0, static_cast<std::int64_t>(f))));
  return y;
}

std::vector<double> column_of(const Matrix& matrix, std::int64_t column) {
  std::vector<double> values;
  for (std::int64_t row = 0; row < matrix.rows; ++row) values.push_back(matrix.at(row, column));
  return values;
}

class LayerNormTest : public testing::TestWithParam<std::int64_t> {};

TEST_P(LayerNormTest, ForwardAndBackwardFollowTheDefinition) {
  const std::int64_t features = GetParam(), items = kPanel + 3;
  Random random(7);
  Arena arena;
  const Matrix x = random_matrix(features, items, random);
  const Matrix scale = random_matrix(1, features, random);
  const Matrix shift = random_matrix(1, features, random);
  const Matrix slope = random_matrix(features, items, random);
  const LayerNormParameters layer{scale.values.data(), shift.values.data(), features, 1e-3F};
  const LayerNormState state{to_panels(x, arena), arena.floats(panels_of(items) * kPanel)};
  const Panels output = arena.panels(features, items), result = arena.panels(features, items);
  const Panels gradient = to_panels(slope, arena);
  layer_norm_tanh_forward(layer, state, output, all_panels(items));
  layer_norm_tanh_backward(layer, state, output, gradient, result, all_panels(items));

  const auto loss = [&](const std::vector<double>& column, std::int64_t item) {
    const std::vector<double> y = definition(column, scale, shift, 1e-3);
    double sum = 0;
    for (std::int64_t f = 0; f < features; ++f)
      sum += y[static_cast<std::size_t>(f)] * static_cast<double>(slope.at(f, item));
    return sum;
  };
  for (std::int64_t item = 0; item < items; ++item) {
    std::vector<double> column = column_of(x, item);
    const std::vector<double> y = definition(column, scale, shift, 1e-3);
    for (std::int64_t f = 0; f < features; ++f) {
      const auto at = static_cast<std::size_t>(f);
      ASSERT_NEAR(output.at(f, item), y[at], 5e-6);
      ASSERT_NEAR(gradient.at(f, item), slope.at(f, item) * (1 - y[at] * y[at]), 1e-5);
      const double value = column[at], step = 1e-5;
      column[at] = value + step;
      const double above = loss(column, item);
      column[at] = value - step;
      const double below = loss(column, item);
      column[at] = value;
      ASSERT_NEAR(result.at(f, item), (above - below) / (2 * step), 2e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Features, LayerNormTest, testing::Values(1, 2, 5, 16, 33));

TEST(LayerNorm, EqualFeaturesGiveTheShiftAlone) {
  Arena arena;
  Matrix x(6, 2), scale(1, 6), shift(1, 6);
  for (float& value : x.values) value = 3;
  for (float& value : scale.values) value = 2;
  for (float& value : shift.values) value = 0.25F;
  const LayerNormState state{to_panels(x, arena), arena.floats(kPanel)};
  const Panels output = arena.panels(6, 2);
  layer_norm_tanh_forward({scale.values.data(), shift.values.data(), 6, 1e-5F}, state, output,
                          {0, 1});
  for (std::int64_t f = 0; f < 6; ++f) EXPECT_NEAR(output.at(f, 1), std::tanh(0.25), 1e-6);
}

}  // namespace
}  // namespace troupe::learners::kernels
