// Implements the agreement.
#include "learners/replicas/membership.hpp"

#include <array>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {

Result<std::uint64_t> agree_on_state(Collective& collective, std::uint64_t applied,
                                     std::span<const at::Tensor> state) {
  const std::array mine = {at::full({}, static_cast<std::int64_t>(applied), at::kLong)};
  const Result<std::vector<at::Tensor>> all = collective.all_gather(mine, "applied updates");
  if (!all) return tl::unexpected(all.error());
  const auto* updates = all->front().const_data_ptr<std::int64_t>();
  int source = 0;
  for (int rank = 1; rank < collective.size(); ++rank)
    if (updates[rank] > updates[source]) source = rank;
  // Into copies: who gave it may die at it, and half of its state with half of one's own is none.
  std::vector<at::Tensor> whole;
  for (const at::Tensor& tensor : state)
    whole.push_back(collective.rank() == source ? tensor : tensor.clone());
  if (Result<void> taken = collective.broadcast(whole, source, "state of the group"); !taken)
    return tl::unexpected(taken.error());
  if (collective.rank() != source)
    for (std::size_t i = 0; i < state.size(); ++i) state[i].copy_(whole[i]);
  return static_cast<std::uint64_t>(updates[source]);
}

}  // namespace troupe::learners
