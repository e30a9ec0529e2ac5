// Policies with random weights for tests, and a slow forward pass in double to compare with.
#pragma once

#include <cmath>
#include <vector>

#include "envs/spec/random.hpp"
#include "models/inference/dense_layers.hpp"
#include "models/inference/parameter_set.hpp"

namespace troupe::models {

inline ParameterSet random_policy(const DenseNetworkShape& shape, std::uint64_t seed) {
  Random random(seed);
  ParameterSet set;
  set.policy = dense_layers(shape);
  for (const Segment& segment : flat_layout(set.policy).segments) {
    ParameterArray& array = set.arrays[segment.name];
    array.shape = segment.shape;
    const double scale = 1 / std::sqrt(static_cast<double>(segment.shape.back()));
    for (std::int64_t i = 0; i < segment.elements; ++i)
      array.values.push_back(static_cast<float>(random.uniform(-scale, scale)));
  }
  return set;
}

inline std::vector<float> random_observations(std::int64_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(random.normal()));
  return values;
}

// One observation through the layers, in double.
inline std::vector<double> slow_forward(const ParameterSet& set, std::vector<double> x) {
  for (const DenseLayer& layer : set.policy) {
    std::vector<double> y(layer.outputs);
    double mean = 0, variance = 0;
    for (const double value : x) mean += value / static_cast<double>(x.size());
    for (const double value : x)
      variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
    for (std::uint32_t o = 0; o < layer.outputs; ++o) {
      const auto array = [&](const char* part, std::size_t i) {
        return static_cast<double>(set.arrays.at(layer.name + part).values[i]);
      };
      switch (layer.kind) {
        case DenseLayer::Kind::kLinear:
          y[o] = array(".bias", o);
          for (std::uint32_t i = 0; i < layer.inputs; ++i)
            y[o] += array(".weight", std::size_t{o} * layer.inputs + i) * x[i];
          break;
        case DenseLayer::Kind::kLayerNorm:
          y[o] = (x[o] - mean) / std::sqrt(variance + static_cast<double>(layer.epsilon)) *
                     array(".weight", o) +
                 array(".bias", o);
          break;
        case DenseLayer::Kind::kTanh:
          y[o] = std::tanh(x[o]);
          break;
        case DenseLayer::Kind::kElu:
          y[o] = x[o] > 0 ? x[o] : std::expm1(x[o]);
          break;
        case DenseLayer::Kind::kRelu:
          y[o] = x[o] > 0 ? x[o] : 0;
          break;
      }
    }
    x = y;
  }
  return x;
}

}  // namespace troupe::models
