#include "learners/replicas/group_replicator.hpp"

#include <string>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {

Result<std::unique_ptr<Replicator>> make_group_replicator(const LearnerOptions& options,
                                                          const LearnerGroup& group) {
  // Threads of one process have nobody to do without.
  const ReplicationOptions replication{
      .replicas = options.replicas,
      .threads = options.threads,
      .transport = options.transport,
      .timeout = group.size > 1 ? options.timeout : Duration(kCollectiveTimeout)};
  const Processes processes{.index = group.rank,
                            .count = group.size,
                            .rendezvous = group.rendezvous,
                            .name = "learners-" + std::to_string(group.generation)};
  return Replicator::make(replication, processes,
                          [](ReplicaContext&) -> StepFunctions { return {}; });
}

Result<void> compare_states(Replicator& replicator, std::uint64_t version,
                            const std::function<std::uint64_t(int)>& hash_of) {
  return replicator.step([&](int i, ReplicaContext& context) -> Result<void> {
    const at::Tensor mine = at::full({1}, static_cast<std::int64_t>(hash_of(i)), at::kLong);
    const auto all = context.collective().all_gather(std::span(&mine, 1), "hash of the state");
    if (!all) return tl::unexpected(all.error());
    const auto* hashes = all->front().const_data_ptr<std::int64_t>();
    for (int rank = 0; rank < context.collective().size(); ++rank)
      if (hashes[rank] != hashes[0])
        return fail(ErrorCode::kInternal, "After update " + std::to_string(version) + " replica " +
                                              std::to_string(rank) +
                                              " holds another state than replica 0.");
    return {};
  });
}

}  // namespace troupe::learners
