// First values of dense networks, drawn from a saved generator so that equal seeds give equal bits
// on every device. Pure functions, torch-free.
#pragma once

#include <vector>

#include "envs/spec/random.hpp"
#include "models/inference/dense_layers.hpp"

namespace troupe::models {

struct Initialisation {
  // Weights ~ U(-l, l) with l = sqrt(3 * scale / fan-out): variance-scaling by the outputs.
  double scale = 0.333;
  // The last linear layer instead by its inputs, l = sqrt(3 * output_scale / fan-in); 0: like the
  // others. A small one makes first actions lie near the middle of their bounds.
  double output_scale = 0;
};

// Values for a buffer of this layout: biases 0, LayerNorm weights 1, padding 0.
std::vector<float> initial_values(const std::vector<DenseLayer>& layers, const FlatLayout& layout,
                                  const Initialisation& initialisation, Random& random);

}  // namespace troupe::models
