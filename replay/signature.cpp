// Builds signatures from specs and measures chunks.
#include "replay/signature.hpp"

#include <algorithm>

namespace troupe::replay {

Signature signature_of(const EnvSpec& spec) {
  Signature signature;
  signature.spec_hash = hash_of(spec);
  if (const std::int64_t size = spec.observation_size(); size > 0)
    signature.observation.push_back({"observation", DType::kF32, {size}});
  for (const Column& column : spec.observations)
    if (column.dtype == DType::kU8) signature.observation.push_back(column);
  if (spec.action.discrete)
    signature.step.push_back({"action", DType::kI32, {}});
  else
    signature.step.push_back({"action", DType::kF32, {spec.action.elements()}});
  return signature;
}

std::uint32_t Signature::lead() const {
  std::uint32_t lead = 0;
  for (const std::uint32_t rows : frame_stack) lead = std::max(lead, rows - std::min(rows, 1U));
  return lead;
}

std::size_t Chunk::bytes() const {
  std::size_t total = reward.size() * sizeof(float);
  for (const auto& column : observation) total += column.size();
  for (const auto& column : step) total += column.size();
  return total;
}

}  // namespace troupe::replay
