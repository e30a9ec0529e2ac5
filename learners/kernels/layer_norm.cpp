#include "learners/kernels/layer_norm.hpp"

#include <cmath>

namespace troupe::learners::kernels {
namespace {

// Sum over the rows of term(row) for one vector of items, in two chains that hide the latency of
// the addition.
template <class Term>
Vector sum_rows(std::int64_t rows, Term term) {
  Vector even{}, odd{};
  std::int64_t row = 0;
  for (; row + 1 < rows; row += 2) {
    even += term(row);
    odd += term(row + 1);
  }
  if (row < rows) even += term(row);
  return even + odd;
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
    for (std::int64_t lane = 0; lane < kPanel; lane += kLanes) {
      float* x = state.normalised.panel(panel) + lane;
      float* y = output.panel(panel) + lane;
      const Vector mean = share * sum_rows(rows, [&](auto row) { return load(x + row * kPanel); });
      const Vector variance = share * sum_rows(rows, [&](auto row) {
                                const Vector distance = load(x + row * kPanel) - mean;
                                return distance * distance;
                              });
      const Vector inverse = inverse_root(variance + layer.epsilon);
      store(state.inverse_deviation + panel * kPanel + lane, inverse);
      for (std::int64_t row = 0; row < rows; ++row) {
        const Vector normalised = (load(x + row * kPanel) - mean) * inverse;
        store(x + row * kPanel, normalised);
        store(y + row * kPanel, tanh(multiply_add(normalised, broadcast(layer.scale[row]),
                                                  broadcast(layer.shift[row]))));
      }
    }
  }
}

void layer_norm_tanh_backward(const LayerNormParameters& layer, const LayerNormState& state,
                              const Panels& output, const Panels& gradient,
                              const Panels& input_gradient, Range panels) {
  const std::int64_t rows = layer.features;
  const float share = 1.0F / static_cast<float>(rows);
  for (std::int64_t panel = panels.begin; panel < panels.end; ++panel) {
    for (std::int64_t lane = 0; lane < kPanel; lane += kLanes) {
      const float* x = state.normalised.panel(panel) + lane;
      const float* y = output.panel(panel) + lane;
      float* d = gradient.panel(panel) + lane;
      float* dx = input_gradient.panel(panel) + lane;
      Vector sum_d{}, sum_dx{};
      for (std::int64_t row = 0; row < rows; ++row) {
        const Vector affine = load(d + row * kPanel) * tanh_slope(load(y + row * kPanel));
        store(d + row * kPanel, affine);
        const Vector scaled = affine * broadcast(layer.scale[row]);
        sum_d += scaled;
        sum_dx = multiply_add(scaled, load(x + row * kPanel), sum_dx);
      }
      const Vector inverse = load(state.inverse_deviation + panel * kPanel + lane);
      const Vector mean_d = share * sum_d, mean_dx = share * sum_dx;
      for (std::int64_t row = 0; row < rows; ++row) {
        const Vector scaled = load(d + row * kPanel) * broadcast(layer.scale[row]);
        store(dx + row * kPanel, inverse * (scaled - mean_d - load(x + row * kPanel) * mean_dx));
      }
    }
  }
}

}  // namespace troupe::learners::kernels
