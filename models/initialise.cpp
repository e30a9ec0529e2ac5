// Implements the initialisation.
#include "models/initialise.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::models {

std::vector<float> initial_values(const std::vector<DenseLayer>& layers, const FlatLayout& layout,
                                  const Initialisation& initialisation, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(layout.size));
  const auto last_linear = std::find_if(layers.rbegin(), layers.rend(), [](const DenseLayer& l) {
    return l.kind == DenseLayer::Kind::kLinear;
  });
  auto segment = layout.segments.begin();
  for (const DenseLayer& layer : layers) {
    const bool linear = layer.kind == DenseLayer::Kind::kLinear;
    if (!linear && layer.kind != DenseLayer::Kind::kLayerNorm) continue;
    const auto weight = values.begin() + segment->offset;
    const bool small = initialisation.output_scale > 0 && &layer == &*last_linear;
    const double limit = small ? std::sqrt(3 * initialisation.output_scale / layer.inputs)
                               : std::sqrt(3 * initialisation.scale / layer.outputs);
    std::generate_n(weight, segment->elements, [&] {
      return linear ? static_cast<float>(random.uniform(-limit, limit)) : 1.0F;
    });
    segment += 2;  // weight and bias
  }
  return values;
}

}  // namespace troupe::models
