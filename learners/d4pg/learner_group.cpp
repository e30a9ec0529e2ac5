// Implements the learner's part in a group of learners.
#include <cstring>

#include "learners/d4pg/learner.hpp"
#include "learners/replicas/group_replicator.hpp"
#include "learners/replicas/membership.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

template <class T>
at::Tensor bytes_of_values(std::span<const T> values) {
  const auto size = static_cast<std::int64_t>(values.size_bytes());
  const at::Tensor bytes = at::empty({size}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), values.data(), values.size_bytes());
  return bytes;
}

std::span<const std::uint8_t> bytes_in(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<std::uint8_t>(), static_cast<std::size_t>(tensor.numel())};
}

// Of each replica, which takes its own copy; all end with equal ones.
std::vector<at::Tensor> copies(const at::Tensor& tensor, int count) {
  std::vector<at::Tensor> copies;
  for (int i = 0; i < count; ++i) copies.push_back(tensor.clone());
  return copies;
}

}  // namespace

Result<void> D4pgLearner::replicate(const LearnerGroup& group) {
  replicator_.reset();  // leaves
  auto made = make_group_replicator(options_, group);
  if (!made) return tl::unexpected(made.error());
  replicator_ = *std::move(made);
  group_ = group;
  return {};
}

std::int64_t D4pgLearner::rows_before(std::int64_t index) const {
  const std::int64_t all = group_.size * options_.replicas;
  return model_.options.batch * (group_.rank * options_.replicas + index) / all;
}

Result<void> D4pgLearner::join(const LearnerGroup& group) {
  if (model_.options.batch < group.size * options_.replicas)
    return fail(ErrorCode::kInvalidArgument, "A batch of " + std::to_string(model_.options.batch) +
                                                 " items cannot be divided over " +
                                                 std::to_string(group.size) + " learners of " +
                                                 std::to_string(options_.replicas) + " replicas.");
  servers_.reset();
  unsettled_ = Unsettled::kNothing;
  Result<void> joined = replicate(group).and_then([this] { return agree(); });
  if (!joined) {
    replicator_.reset();
    return joined;
  }
  if (!group.asynchronous) {
    context_.epoch = group.generation;
    return {};
  }
  unsettled_ = Unsettled::kValues;
  // A call to settle() takes four such times at most, and the others of the group wait for it.
  if (group.rank == 0)
    servers_ = std::make_unique<D4pgServerLink>(
        model_, group.servers, WorkerId{group.worker, group.generation}, options_.timeout / 6);
  return {};
}

Result<void> D4pgLearner::agree() {
  const auto words = random_.state();
  const auto random = copies(bytes_of_values(std::span<const std::uint64_t>(words)), replicas());
  const auto encoded = statistics_.encode();
  const auto statistics =
      copies(bytes_of_values(std::span<const std::uint8_t>(encoded)), replicas());
  const Result<void> agreed =
      replicator_->step([&](int i, ReplicaContext& context) -> Result<void> {
        const auto index = static_cast<std::size_t>(i);
        D4pgReplica& replica = *replicas_[index];
        std::vector<at::Tensor> state = replica.state();
        state.push_back(random[index]);
        state.push_back(statistics[index]);
        return agree_on_state(context.collective(), replica.updates(), state)
            .map([&](std::uint64_t updates) { replica.set_updates(updates); });
      });
  if (!agreed) return agreed;
  Random::State taken{};
  std::memcpy(taken.data(), random.front().const_data_ptr(), sizeof(taken));
  random_.set_state(taken);
  Result<models::RunningStatistics> decoded =
      models::RunningStatistics::decode(bytes_in(statistics.front()));
  if (!decoded) return tl::unexpected(decoded.error());
  statistics_ = *std::move(decoded);
  if (scale_) rescale();
  return {};
}

Result<bool> D4pgLearner::all_ready(bool ready) {
  if (!replicator_) return fail(ErrorCode::kUnavailable, "The learner is between two groups.");
  if (group_.size == 1) return ready;
  const auto flags = copies(at::full({1}, ready ? 1 : 0, at::kInt), replicas());
  const Result<void> asked = replicator_->step([&](int i, ReplicaContext& context) {
    return context.collective().all_reduce(std::span(&flags[static_cast<std::size_t>(i)], 1),
                                           ReduceOp::kMin, "whether all have a batch");
  });
  if (!asked) return tl::unexpected(asked.error());
  return flags.front().item<int>() == 1;
}

// Only rank 0 hears of what environment actors observe, so that all scale with the same bits.
Result<void> D4pgLearner::share_statistics() {
  if (!scale_ || group_.size == 1) return {};
  const auto encoded = statistics_.encode();
  const auto shared = copies(bytes_of_values(std::span<const std::uint8_t>(encoded)), replicas());
  const Result<void> done = replicator_->step([&](int i, ReplicaContext& context) {
    return context.collective().broadcast(std::span(&shared[static_cast<std::size_t>(i)], 1), 0,
                                          "observation statistics");
  });
  if (!done || group_.rank == 0) return done;
  Result<models::RunningStatistics> decoded =
      models::RunningStatistics::decode(bytes_in(shared.front()));
  if (!decoded) return tl::unexpected(decoded.error());
  statistics_ = *std::move(decoded);
  rescale();
  return {};
}

Result<void> D4pgLearner::compare() {
  return compare_states(*replicator_, version(), [this](int i) { return state_hash(i); });
}

}  // namespace troupe::learners
