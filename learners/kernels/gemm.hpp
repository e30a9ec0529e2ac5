// The three matrix products of a dense layer over panels of items, with the layer's own arithmetic
// (bias, activation, its derivative) done while a tile is still in registers. Written by hand
// because a library's sgemm packs both operands on every call and leaves the activations to passes
// of their own: here activations are born in the layout in which the next product reads them.
//
// Every result element is one chain of fused multiply-adds in the order of the summed index, so
// results do not depend on how a caller splits panels or rows over threads. Pure functions over
// disjoint outputs; any thread.
#pragma once

#include <cstdint>

#include "learners/kernels/panels.hpp"

namespace troupe::learners::kernels {

enum class Activation : std::uint8_t { kNone, kElu, kTanh };

// A linear layer's parameters, row-major as the learner stores them: weight [outputs, inputs].
struct LinearParameters {
  const float* weight = nullptr;
  const float* bias = nullptr;
  std::int64_t outputs = 0, inputs = 0;
};

// output = activation(weight * input + bias) for the items of `panels`. `input` has `inputs` rows,
// `output` `outputs` rows. 2 * outputs * inputs operations an item.
void linear_forward(const LinearParameters& layer, const Panels& input, const Panels& output,
                    Activation activation, Range panels);

// input_gradient = weight^T * output_gradient, times the derivative of `activation` where
// `activated` holds that activation's values (the layer's input); kNone: `activated` is not read.
// `packed_weight`: pack_columns of the weight, as many columns as input_gradient has rows.
void linear_backward_input(const Panels& packed_weight, const Panels& output_gradient,
                           const Panels& input_gradient, Activation activation,
                           const Panels& activated, Range panels);

// Item panels that linear_backward_weight transposes at a time, and the floats that takes.
inline constexpr std::int64_t kTransposedPanels = 256 / kPanel;
inline constexpr std::int64_t kTransposedSize = kSpan * kTransposedPanels * kPanel * kPanel;

// weight_gradient [outputs, inputs] = output_gradient * input^T and bias_gradient [outputs] = the
// sum of output_gradient over the items: the share of `member` of `members`. Lanes past the last
// item count as items: output_gradient holds 0 there. `transposed`: kTransposedSize floats of the
// member's own.
void linear_backward_weight(const Panels& output_gradient, const Panels& input,
                            std::int64_t item_panels, float* transposed, float* weight_gradient,
                            float* bias_gradient, std::int64_t member, std::int64_t members);

// result[row] = sum over all lanes of `item_panels` panels of a (times b unless b.data is null).
void sum_items(const Panels& a, const Panels& b, std::int64_t item_panels, float* result,
               Range rows);

}  // namespace troupe::learners::kernels
