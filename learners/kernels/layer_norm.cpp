#include "learners/kernels/layer_norm.hpp"

#include <cmath>

namespace troupe::learners::kernels {
namespace {

// Rows between the one that is computed and the one whose place is asked for.
constexpr std::int64_t kAhead = 8;

// The kPanel items of one row: two vectors, whose independent chains hide each other's latency.
struct Items {
  Vector low{}, high{};
};

Items load_items(const float* from) { return {load(from), load(from + kLanes)}; }

void store_items(float* to, const Items& items) {
  store(to, items.low);
  store(to + kLanes, items.high);
}

// function(vector...) for both halves.
template <class Function, class... Arguments>
inline Items each(Function function, const Arguments&... arguments) {
  return {function(arguments.low...), function(arguments.high...)};
}

template <class Term>
inline Items sum_rows(std::int64_t rows, Term term) {
  Items even, odd;
  const auto add = [](Vector a, Vector b) { return a + b; };
  std::int64_t row = 0;
  for (; row + 1 < rows; row += 2) {
    even = each(add, even, term(row));
    odd = each(add, odd, term(row + 1));
  }
  if (row < rows) even = each(add, even, term(row));
  return each(add, even, odd);
}

Vector inverse_root(Vector value) {
  float lanes[kLanes];
  store(lanes, value);
  for (float& lane : lanes) lane = 1.0F / std::sqrt(lane);
  return load(lanes);
}

}  // namespace

void layer_norm_tanh_forward(const LayerNormParameters& layer, const LayerNormState& state,
                             const Panels& output, Range panels) {
  const std::int64_t rows = layer.features;
  const float share = 1.0F / static_cast<float>(rows);
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    float* x = state.normalised.panel(panel);
    float* y = output.panel(panel);
    const auto mean_of = [&](Vector total) { return share * total; };
    const Items mean =
        each(mean_of, sum_rows(rows, [&](auto row) { return load_items(x + row * kPanel); }));
    const auto square = [](Vector value, Vector centre) {
      return (value - centre) * (value - centre);
    };
    const Items variance = each(mean_of, sum_rows(rows, [&](auto row) {
                                  return each(square, load_items(x + row * kPanel), mean);
                                }));
    const Items inverse =
        each([&](Vector value) { return inverse_root(value + layer.epsilon); }, variance);
    store_items(state.inverse_deviation + panel * kPanel, inverse);
    for (std::int64_t row = 0; row < rows; ++row) {
      const Items normalised =
          each([](Vector value, Vector centre, Vector scale) { return (value - centre) * scale; },
               load_items(x + row * kPanel), mean, inverse);
      __builtin_prefetch(y + (row + kAhead) * kPanel, 1);
      store_items(x + row * kPanel, normalised);
      const Vector scale = broadcast(layer.scale[row]), shift = broadcast(layer.shift[row]);
      store_items(
          y + row * kPanel,
          each([&](Vector value) { return tanh(multiply_add(value, scale, shift)); }, normalised));
    }
  }
}

void layer_norm_tanh_backward(const LayerNormParameters& layer, const LayerNormState& state,
                              const Panels& output, const Panels& gradient,
                              const Panels& input_gradient, Range panels) {
  const std::int64_t rows = layer.features;
  const float share = 1.0F / static_cast<float>(rows);
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const float* x = state.normalised.panel(panel);
    const float* y = output.panel(panel);
    float* d = gradient.panel(panel);
    float* dx = input_gradient.panel(panel);
    Items sum_d, sum_dx;
    for (std::int64_t row = 0; row < rows; ++row) {
      const Items affine =
          each([](Vector slope, Vector value) { return slope * tanh_slope(value); },
               load_items(d + row * kPanel), load_items(y + row * kPanel));
      store_items(d + row * kPanel, affine);
      const Vector scale = broadcast(layer.scale[row]);
      sum_d = each([&](Vector slope, Vector total) { return multiply_add(slope, scale, total); },
                   affine, sum_d);
      sum_dx = each([&](Vector slope, Vector value,
                        Vector total) { return multiply_add(slope * scale, value, total); },
                    affine, load_items(x + row * kPanel), sum_dx);
    }
    const Items inverse = load_items(state.inverse_deviation + panel * kPanel);
    for (std::int64_t row = 0; row < rows; ++row) {
      const Vector scale = broadcast(layer.scale[row]);
      const auto slope = [&](Vector affine, Vector value, Vector factor, Vector total_d,
                             Vector total_dx) {
        return factor * (affine * scale - share * total_d - value * (share * total_dx));
      };
      __builtin_prefetch(dx + (row + kAhead) * kPanel, 1);
      store_items(dx + row * kPanel, each(slope, load_items(d + row * kPanel),
                                          load_items(x + row * kPanel), inverse, sum_d, sum_dx));
    }
  }
}

}  // namespace troupe::learners::kernels
