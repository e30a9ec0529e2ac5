// A policy of dense layers on the CPU without LibTorch: observations in, actions in [-1, 1] out.
// Belongs to one thread; replaced, not changed, when new parameters arrive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"
#include "models/inference/parameter_set.hpp"

namespace troupe::models {

class DensePolicy {
 public:
  // Checks that layers follow one another, that every array is there with its shape and that all
  // values are finite. Packs the weights: O(parameters). `max_rows` bounds K of act(). Arrays
  // normaliser.mean and .variance, when present, scale the observations first.
  static Result<DensePolicy> make(const ParameterSet& set, std::int64_t max_rows = 32);

  DensePolicy(DensePolicy&&) noexcept;
  DensePolicy& operator=(DensePolicy&&) noexcept;
  ~DensePolicy();

  std::int64_t inputs() const;
  std::int64_t outputs() const;
  std::int64_t max_rows() const;

  // observations [K, inputs] -> actions [K, outputs], row-major, 1 <= K <= max_rows. Allocates
  // nothing. A row's result has the same bits whatever K is. Within 1e-5 of the learner's network.
  void act(std::span<const float> observations, std::span<float> actions);

 private:
  struct State;
  explicit DensePolicy(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::models
