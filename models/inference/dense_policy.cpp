// Implements the policy: validation once, then layer after layer between two scratch buffers.
#include "models/inference/dense_policy.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "models/inference/normaliser.hpp"
#include "models/inference/packed_linear.hpp"

namespace troupe::models {
namespace {

using Values = Eigen::Map<Eigen::ArrayXf>;
using ConstValues = Eigen::Map<const Eigen::ArrayXf>;
using Kind = DenseLayer::Kind;

tl::unexpected<Error> refuse(ErrorCode code, const std::string& what) {
  return fail(code, "The policy's parameters cannot be used: " + what + ".");
}

Result<const ParameterArray*> find(const ParameterSet& set, const std::string& name,
                                   const std::vector<std::int64_t>& shape) {
  const auto found = set.arrays.find(name);
  if (found == set.arrays.end())
    return refuse(ErrorCode::kInvalidArgument, "array " + name + " is missing");
  const ParameterArray& array = found->second;
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  if (array.shape != shape || static_cast<std::int64_t>(array.values.size()) != elements)
    return refuse(ErrorCode::kInvalidArgument,
                  "array " + name + " has another shape than its layer");
  if (!std::all_of(array.values.begin(), array.values.end(),
                   [](float value) { return std::isfinite(value); }))
    return refuse(ErrorCode::kNotFinite, "array " + name + " holds a value that is not finite");
  return &array;
}

struct Layer {
  Kind kind = Kind::kLinear;
  std::int64_t width = 0;              // outputs
  std::optional<PackedLinear> linear;  // kLinear
  std::vector<float> weight, bias;     // kLayerNorm
  float epsilon = 0;
};

void normalise_layer(const Layer& layer, float* row) {
  Values x(row, layer.width);
  const float mean = x.mean();
  x -= mean;
  const float scale = 1.0F / std::sqrt(x.square().mean() + layer.epsilon);
  x = x * scale * ConstValues(layer.weight.data(), layer.width) +
      ConstValues(layer.bias.data(), layer.width);
}

void apply_in_place(const Layer& layer, float* row) {
  Values x(row, layer.width);
  switch (layer.kind) {
    case Kind::kLinear:
      break;
    case Kind::kLayerNorm:
      normalise_layer(layer, row);
      break;
    case Kind::kTanh:
      x = x.tanh();
      break;
    case Kind::kElu:
      // For x > 0 the second term is exactly zero, and so is the first for x < 0.
      x = x.max(0.0F) + (x.min(0.0F).exp() - 1.0F);
      break;
    case Kind::kRelu:
      x = x.max(0.0F);
      break;
  }
}

Result<Layer> make_layer(const ParameterSet& set, const DenseLayer& description,
                         std::int64_t width) {
  if (description.inputs != width || description.outputs == 0)
    return refuse(ErrorCode::kInvalidArgument,
                  "layer '" + description.name + "' does not fit the one before it");
  Layer layer;
  layer.kind = description.kind;
  layer.width = description.outputs;
  const bool linear = description.kind == Kind::kLinear;
  if (!linear && description.outputs != description.inputs)
    return refuse(ErrorCode::kInvalidArgument, "a layer without weights changes the width");
  if (!linear && description.kind != Kind::kLayerNorm) return layer;

  std::vector<std::int64_t> shape = {description.outputs};
  const Result<const ParameterArray*> bias = find(set, description.name + ".bias", shape);
  if (linear) shape.push_back(description.inputs);
  const Result<const ParameterArray*> weight = find(set, description.name + ".weight", shape);
  if (!weight) return tl::unexpected(weight.error());
  if (!bias) return tl::unexpected(bias.error());
  if (linear) {
    layer.linear.emplace((*weight)->values, (*bias)->values, width, layer.width);
  } else {
    layer.weight = (*weight)->values;
    layer.bias = (*bias)->values;
    layer.epsilon = description.epsilon;
  }
  return layer;
}

}  // namespace

struct DensePolicy::State {
  std::vector<Layer> layers;
  std::optional<ObservationScale> scale;
  std::int64_t inputs = 0, outputs = 0, max_rows = 0;
  // [max_rows, widest padded layer]; aligned, because Eigen's sums start at the first aligned
  // float: with any other memory a result's last bits would depend on where it lies.
  using Scratch = std::vector<float, Eigen::aligned_allocator<float>>;
  Scratch scratch[2];
};

DensePolicy::DensePolicy(std::unique_ptr<State> state) : state_(std::move(state)) {}
DensePolicy::DensePolicy(DensePolicy&&) noexcept = default;
DensePolicy& DensePolicy::operator=(DensePolicy&&) noexcept = default;
DensePolicy::~DensePolicy() = default;

std::int64_t DensePolicy::inputs() const { return state_->inputs; }
std::int64_t DensePolicy::outputs() const { return state_->outputs; }
std::int64_t DensePolicy::max_rows() const { return state_->max_rows; }

Result<DensePolicy> DensePolicy::make(const ParameterSet& set, std::int64_t max_rows) {
  if (set.policy.empty() || set.policy.front().kind != Kind::kLinear)
    return refuse(ErrorCode::kInvalidArgument, "the first layer is not a linear one");
  if (max_rows < 1) return refuse(ErrorCode::kInvalidArgument, "max_rows is below 1");

  auto state = std::make_unique<State>();
  state->inputs = set.policy.front().inputs;
  state->max_rows = max_rows;
  std::int64_t width = state->inputs, widest = width;
  for (const DenseLayer& description : set.policy) {
    Result<Layer> layer = make_layer(set, description, width);
    if (!layer) return tl::unexpected(layer.error());
    if (layer->linear) widest = std::max(widest, layer->linear->output_stride());
    width = layer->width;
    state->layers.push_back(*std::move(layer));
  }
  state->outputs = width;
  for (State::Scratch& buffer : state->scratch)
    buffer.resize(static_cast<std::size_t>(max_rows * widest));

  if (set.arrays.contains(kNormaliserMean) || set.arrays.contains(kNormaliserVariance)) {
    const auto mean = find(set, kNormaliserMean, {state->inputs});
    const auto variance = find(set, kNormaliserVariance, {state->inputs});
    if (!mean) return tl::unexpected(mean.error());
    if (!variance) return tl::unexpected(variance.error());
    state->scale.emplace((*mean)->values, (*variance)->values);
  }
  return DensePolicy(std::move(state));
}

void DensePolicy::act(std::span<const float> observations, std::span<float> actions) {
  State& state = *state_;
  const std::int64_t rows = static_cast<std::int64_t>(observations.size()) / state.inputs;
  eigen_assert(rows <= state.max_rows);
  const float* x = observations.data();
  std::int64_t stride = state.inputs;
  int next = 0;
  if (state.scale) {
    state.scale->apply(observations, state.scratch[0]);
    x = state.scratch[0].data();
    next = 1;
  }
  for (const Layer& layer : state.layers) {
    if (layer.kind == Kind::kLinear) {
      float* y = state.scratch[next].data();
      layer.linear->apply(x, stride, y, rows);
      x = y;
      stride = layer.linear->output_stride();
      next = 1 - next;
    } else {
      float* values = state.scratch[1 - next].data();
      for (std::int64_t row = 0; row < rows; ++row) apply_in_place(layer, values + row * stride);
    }
  }
  for (std::int64_t row = 0; row < rows; ++row)
    std::copy_n(x + row * stride, state.outputs, actions.data() + row * state.outputs);
}

}  // namespace troupe::models
