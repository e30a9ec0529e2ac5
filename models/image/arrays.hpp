// The arrays of an image model: what it learns, in flat buffers, and what it keeps beside them
// (batch statistics, vectors of spectral norms). Layers hold indices into them, so that one
// description of a model serves replicas, averaged copies and checkpoints. Owned by a replica; used
// by its thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "envs/spec/random.hpp"
#include "models/flat_parameters.hpp"

namespace troupe::models {

// First values of a parameter.
struct Fill {
  enum class Kind : std::uint8_t { kConstant, kNormal, kUniform };
  Kind kind = Kind::kConstant;
  double value = 0;  // the constant, the standard deviation, or the bound of U(-value, value)
};
inline Fill constant(double value) { return {Fill::Kind::kConstant, value}; }
// He et al. 2015 with fan-out: N(0, sqrt(2 / (outputs * area))).
Fill kaiming_normal(std::int64_t outputs, std::int64_t area);
// Glorot and Bengio 2010: U(-l, l) with l = gain * sqrt(6 / ((inputs + outputs) * area)).
Fill glorot_uniform(std::int64_t inputs, std::int64_t outputs, std::int64_t area, double gain);
// U(-1/sqrt(inputs), 1/sqrt(inputs)): LibTorch's own for linear layers.
Fill uniform_by_inputs(std::int64_t inputs);

// What a model's layers declare while they are put together.
class ArrayList {
 public:
  struct Buffer {
    std::string name;
    std::vector<std::int64_t> shape;
    Fill fill;
  };

  // Index of the new array in Pass::parameters. `decays`: weight decay applies to it.
  std::size_t parameter(std::string name, std::vector<std::int64_t> shape, Fill fill, bool decays);
  // Index in Pass::buffers.
  std::size_t buffer(std::string name, std::vector<std::int64_t> shape, Fill fill);
  // The buffers u [rows] and v [columns] hold the first singular vectors of the parameter as a
  // matrix [rows, everything else], as far as power iteration has come.
  struct Spectral {
    std::size_t weight = 0, u = 0, v = 0;
  };
  void spectral(const Spectral& vectors) { spectral_.push_back(vectors); }
  const std::vector<Spectral>& spectral() const { return spectral_; }

  const FlatLayout& layout() const { return layout_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  const std::vector<bool>& decays() const { return decays_; }  // by parameter
  std::int64_t parameter_count() const;                        // without the padding

  // Draws everything in the order of declaration: equal seeds give equal bits on every device. Then
  // takes a few power iterations, so that a model can be evaluated before it is trained.
  void initialise(const FlatParameters& parameters, std::vector<at::Tensor>& buffers,
                  Random& random) const;

 private:
  FlatLayout layout_;
  std::vector<Fill> fills_;
  std::vector<bool> decays_;
  std::vector<Buffer> buffers_;
  std::vector<Spectral> spectral_;
};

// One step: v = W^T u and u = W v, both to length 1. `matrix` [rows, columns].
void power_step(const at::Tensor& matrix, at::Tensor& u, at::Tensor& v);

// Sums over replicas, elementwise, as part of the graph: its derivative is the sum of the replicas'
// gradients. Empty: this replica alone.
using SumOverReplicas = std::function<at::Tensor(const at::Tensor&)>;

// One evaluation of a model.
struct Pass {
  const std::vector<at::Tensor>& parameters;
  // Layers replace entries, they never write into them: an earlier graph keeps what it saw.
  std::vector<at::Tensor>& buffers;
  bool training = false;         // batch statistics instead of running ones, which move
  bool power_iteration = false;  // spectral norms take one step
  SumOverReplicas sum{};         // of batch statistics; empty: each replica's own
  std::int64_t rows = 0;         // of all replicas that `sum` adds
};

// Parameters with buffers, all on one device.
class ImageArrays {
 public:
  ImageArrays(const ArrayList& list, Random& random, at::Device device = at::kCPU,
              at::ScalarType type = at::kFloat);

  const FlatParameters& parameters() const { return parameters_; }
  std::vector<at::Tensor>& buffers() { return buffers_; }
  const std::vector<at::Tensor>& buffers() const { return buffers_; }

 private:
  FlatParameters parameters_;
  std::vector<at::Tensor> buffers_;
};

}  // namespace troupe::models
