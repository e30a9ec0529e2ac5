// Value distributions over fixed atoms (Bellemare et al. 2017, arXiv:1707.06887). Pure functions.
#pragma once

#include <ATen/core/Tensor.h>

#include "envs/spec/result.hpp"

namespace troupe::models {

// Atoms z_j = v_min + j * spacing(), j = 0 .. atoms-1, both ends included.
struct CategoricalSupport {
  double v_min = 0, v_max = 0;
  std::int64_t atoms = 0;

  double spacing() const { return (v_max - v_min) / static_cast<double>(atoms - 1); }
  at::Tensor values(const at::TensorOptions& options) const;  // [atoms]
};

// kInvalidArgument unless v_min < v_max are finite and atoms >= 2.
Result<CategoricalSupport> make_support(double v_min, double v_max, std::int64_t atoms);

// Moves the mass `probabilities` [B, atoms] from the values reward + discount * z_j to the atoms:
// each mass is shared by the two nearest atoms in proportion, what falls outside goes to the nearer
// end. reward and discount: [B]. Result [B, atoms]; keeps the total mass, and the mean where
// nothing falls outside. O(B * atoms^2), as elementwise operations of fixed shape, so that it runs
// alike on every device.
at::Tensor project(const CategoricalSupport& support, const at::Tensor& probabilities,
                   const at::Tensor& reward, const at::Tensor& discount);

// Mass of each row whose value lies outside the support: [B].
at::Tensor mass_outside(const CategoricalSupport& support, const at::Tensor& probabilities,
                        const at::Tensor& reward, const at::Tensor& discount);

}  // namespace troupe::models
