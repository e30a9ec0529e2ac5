// The three products of a linear layer against sums in double, at sizes that leave a rest in every
// direction, and the promise that splitting the work changes no bit.
#include "learners/kernels/gemm.hpp"

#include <cstring>

#include "tests/learners/kernels/matrices.hpp"

namespace troupe::learners::kernels {
namespace {

struct Size {
  std::int64_t outputs, inputs, items;
};

const std::vector<Size> kSizes = {{1, 1, 1},     {6, 17, 1},    {5, 3, 9},      {51, 256, 33},
                                  {13, 300, 16}, {512, 23, 40}, {100, 513, 70}, {257, 258, 31}};

double activate(double x, Activation activation) {
  if (activation == Activation::kElu) return x > 0 ? x : std::expm1(x);
  return activation == Activation::kTanh ? std::tanh(x) : x;
}

// A sum of n products of numbers below 1 in float: n rounding errors of at most n * 2^-24, in
// practice their root.
double tolerance(std::int64_t terms) { return 4e-7 * static_cast<double>(terms) + 1e-6; }

TEST(Gemm, ForwardIsWeightTimesInputPlusBiasActivated) {
  Random random(1);
  for (const auto& [outputs, inputs, items] : kSizes)
    for (const Activation activation : {Activation::kNone, Activation::kElu, Activation::kTanh}) {
      Arena arena;
      const Matrix weight = random_matrix(outputs, inputs, random);
      const Matrix bias = random_matrix(1, outputs, random);
      const Matrix input = random_matrix(inputs, items, random);
      const Panels output = arena.panels(outputs, items);
      linear_forward({weight.values.data(), bias.values.data(), outputs, inputs},
                     to_panels(input, arena), output, activation, all_panels(items));
      for (std::int64_t o = 0; o < outputs; ++o)
        for (std::int64_t item = 0; item < items; ++item) {
          double sum = bias.at(0, o);
          for (std::int64_t i = 0; i < inputs; ++i)
            sum += static_cast<double>(weight.at(o, i)) * static_cast<double>(input.at(i, item));
          ASSERT_NEAR(output.at(o, item), activate(sum, activation), tolerance(inputs))
              << outputs << " x " << inputs << ", item " << item;
        }
    }
}

TEST(Gemm, BackwardInputIsTransposedWeightTimesGradientTimesSlope) {
  Random random(2);
  for (const auto& [outputs, inputs, items] : kSizes)
    for (const Activation activation : {Activation::kNone, Activation::kElu, Activation::kTanh}) {
      Arena arena;
      const Matrix weight = random_matrix(outputs, inputs, random);
      const Matrix gradient = random_matrix(outputs, items, random);
      const Matrix activated = random_matrix(inputs, items, random);
      const Panels packed = arena.panels(outputs, inputs), result = arena.panels(inputs, items);
      pack_columns(weight.values.data(), inputs, 0, inputs, packed, all_panels(inputs));
      linear_backward_input(packed, to_panels(gradient, arena), result, activation,
                            to_panels(activated, arena), all_panels(items));
      for (std::int64_t i = 0; i < inputs; ++i)
        for (std::int64_t item = 0; item < items; ++item) {
          double sum = 0;
          for (std::int64_t o = 0; o < outputs; ++o)
            sum += static_cast<double>(weight.at(o, i)) * static_cast<double>(gradient.at(o, item));
          const double value = activated.at(i, item);
          if (activation == Activation::kElu) sum *= value > 0 ? 1 : value + 1;
          if (activation == Activation::kTanh) sum *= 1 - value * value;
          ASSERT_NEAR(result.at(i, item), sum, 2 * tolerance(outputs));
        }
    }
}

// With more items than are transposed at a time, and more members than some of the matrices have
// panels.
TEST(Gemm, BackwardWeightSumsOverItemsOverAllMembers) {
  Random random(3);
  std::vector<Size> sizes = kSizes;
  sizes.push_back({17, 19, (2 * kTransposedPanels + 1) * kPanel - 3});
  for (const auto& [outputs, inputs, items] : sizes)
    for (const std::int64_t members : {1, 2, 5}) {
      Arena arena;
      const Matrix gradient = random_matrix(outputs, items, random);
      const Matrix input = random_matrix(inputs, items, random);
      std::vector<float> weight(static_cast<std::size_t>(outputs * inputs + 1), 9.0F);
      std::vector<float> bias(static_cast<std::size_t>(outputs + 1), 9.0F);
      std::vector<float> transposed(kTransposedSize);
      for (std::int64_t member = 0; member < members; ++member)
        linear_backward_weight(to_panels(gradient, arena), to_panels(input, arena),
                               panels_of(items), transposed.data(), weight.data(), bias.data(),
                               member, members);
      for (std::int64_t o = 0; o < outputs; ++o) {
        double bias_sum = 0;
        for (std::int64_t item = 0; item < items; ++item) bias_sum += gradient.at(o, item);
        ASSERT_NEAR(bias[static_cast<std::size_t>(o)], bias_sum, tolerance(items));
        for (std::int64_t i = 0; i < inputs; ++i) {
          double sum = 0;
          for (std::int64_t item = 0; item < items; ++item)
            sum +=
                static_cast<double>(gradient.at(o, item)) * static_cast<double>(input.at(i, item));
          ASSERT_NEAR(weight[static_cast<std::size_t>(o * inputs + i)], sum, tolerance(items));
        }
      }
      EXPECT_EQ(weight.back(), 9.0F);
      EXPECT_EQ(bias.back(), 9.0F);
    }
}

TEST(Gemm, SumItemsMultipliesTwoMatricesElementwise) {
  Random random(4);
  Arena arena;
  const Matrix a = random_matrix(7, 35, random), b = random_matrix(7, 35, random);
  std::vector<float> result(7);
  sum_items(to_panels(a, arena), to_panels(b, arena), panels_of(35), result.data(), {0, 7});
  for (std::int64_t row = 0; row < 7; ++row) {
    double sum = 0;
    for (std::int64_t item = 0; item < 35; ++item)
      sum += static_cast<double>(a.at(row, item)) * static_cast<double>(b.at(row, item));
    EXPECT_NEAR(result[static_cast<std::size_t>(row)], sum, 1e-5);
  }
}

TEST(Gemm, SplittingPanelsAndRowsChangesNoBit) {
  Random random(5);
  const std::int64_t outputs = 67, inputs = 300, items = 5 * kPanel;
  Arena arena;
  const Matrix weight = random_matrix(outputs, inputs, random);
  const Matrix bias = random_matrix(1, outputs, random);
  const Panels input = to_panels(random_matrix(inputs, items, random), arena);
  const Panels whole = arena.panels(outputs, items), split = arena.panels(outputs, items);
  const LinearParameters layer{weight.values.data(), bias.values.data(), outputs, inputs};
  linear_forward(layer, input, whole, Activation::kElu, {0, 5});
  for (const Range part : {Range{3, 5}, Range{0, 1}, Range{1, 3}})
    linear_forward(layer, input, split, Activation::kElu, part);
  EXPECT_EQ(std::memcmp(whole.data, split.data, static_cast<std::size_t>(whole.stride) * 5 * 4), 0);

  std::vector<float> one(static_cast<std::size_t>(outputs * inputs)), two = one;
  std::vector<float> bias_one(static_cast<std::size_t>(outputs)), bias_two = bias_one;
  std::vector<float> transposed(kTransposedSize);
  linear_backward_weight(whole, input, 5, transposed.data(), one.data(), bias_one.data(), 0, 1);
  for (std::int64_t member = 0; member < 3; ++member)
    linear_backward_weight(whole, input, 5, transposed.data(), two.data(), bias_two.data(), member,
                           3);
  EXPECT_EQ(one, two);
  EXPECT_EQ(bias_one, bias_two);
}

}  // namespace
}  // namespace troupe::learners::kernels
