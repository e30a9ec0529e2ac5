// The named set of parameters that a learner publishes and environment actors and evaluators act
// with: an immutable value, shared by reference. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::models {

// One layer of a dense network, applied in order.
//   linear      weight [outputs, inputs] row-major, bias [outputs]
//   layer_norm  weight [outputs], bias [outputs], epsilon
//   activations have no parameters
struct DenseLayer {
  enum class Kind : std::uint8_t { kLinear = 0, kLayerNorm = 1, kTanh = 2, kElu = 3, kRelu = 4 };
  Kind kind = Kind::kLinear;
  std::uint32_t inputs = 0, outputs = 0;
  float epsilon = 1e-5F;
  std::string name;  // prefix of its arrays in ParameterSet::arrays: name + ".weight", ".bias"
};

struct ParameterArray {
  std::vector<std::int64_t> shape;
  std::vector<float> values;  // row-major
};

struct ParameterSet {
  std::uint32_t learner_epoch = 0;  // a restarted learner's sets win over its predecessor's
  std::uint64_t version = 0;        // updates applied
  std::vector<DenseLayer> policy;   // the layers between observation and action in [-1, 1]
  std::map<std::string, ParameterArray>
      arrays;  // policy arrays; "normaliser.mean", ".variance" if on

  // Newest wins: by epoch, then by version.
  bool newer_than(const ParameterSet& other) const {
    return learner_epoch != other.learner_epoch ? learner_epoch > other.learner_epoch
                                                : version > other.version;
  }
};
using ParameterSetPtr = std::shared_ptr<const ParameterSet>;

// Versioned bytes with magic and checksum; decode checks every size before it allocates (kCorrupt).
std::vector<std::uint8_t> encode(const ParameterSet& set);
Result<ParameterSet> decode_parameter_set(std::span<const std::uint8_t> bytes);

}  // namespace troupe::models
