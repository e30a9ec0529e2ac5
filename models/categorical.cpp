// Implements the projection.
#include "models/categorical.hpp"

#include <cmath>

#include "models/torch_precompiled.hpp"

namespace troupe::models {
namespace {

// [B, atoms] values after one Bellman step, in units of atoms from v_min: 0 .. atoms-1 lies inside.
at::Tensor positions(const CategoricalSupport& support, const at::Tensor& reward,
                     const at::Tensor& discount) {
  const at::Tensor index = at::arange(support.atoms, reward.options());
  // (reward + discount * (v_min + j * spacing) - v_min) / spacing
  const at::Tensor shift = (reward + (discount - 1) * support.v_min) / support.spacing();
  return shift.unsqueeze(1) + discount.unsqueeze(1) * index;
}

}  // namespace

at::Tensor CategoricalSupport::values(const at::TensorOptions& options) const {
  return at::linspace(v_min, v_max, atoms, options);
}

Result<CategoricalSupport> make_support(double v_min, double v_max, std::int64_t atoms) {
  if (!std::isfinite(v_min) || !std::isfinite(v_max) || v_min >= v_max)
    return fail(ErrorCode::kInvalidArgument,
                "The support needs v_min < v_max, both finite, but v_min is " +
                    std::to_string(v_min) + " and v_max " + std::to_string(v_max) + ".");
  if (atoms < 2)
    return fail(ErrorCode::kInvalidArgument,
                "The support needs at least 2 atoms, not " + std::to_string(atoms) + ".");
  return CategoricalSupport{v_min, v_max, atoms};
}

at::Tensor project(const CategoricalSupport& support, const at::Tensor& probabilities,
                   const at::Tensor& reward, const at::Tensor& discount) {
  const double last = static_cast<double>(support.atoms - 1);
  const at::Tensor from = positions(support, reward, discount).clamp(0.0, last);
  const at::Tensor to = at::arange(support.atoms, reward.options()).unsqueeze(0).unsqueeze(2);
  // [B, to, from]: share of atom `from` that goes to atom `to`.
  const at::Tensor share = (1.0 - (from.unsqueeze(1) - to).abs()).clamp_min(0.0);
  return at::matmul(share, probabilities.unsqueeze(2)).squeeze(2);
}

at::Tensor mass_outside(const CategoricalSupport& support, const at::Tensor& probabilities,
                        const at::Tensor& reward, const at::Tensor& discount) {
  constexpr double kRounding = 1e-4;  // of an atom's spacing
  const double last = static_cast<double>(support.atoms - 1);
  const at::Tensor from = positions(support, reward, discount);
  const at::Tensor outside = at::logical_or(from<-kRounding, from> last + kRounding);
  return (probabilities * outside.to(probabilities.scalar_type())).sum(1);
}

}  // namespace troupe::models
