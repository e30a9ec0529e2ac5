#include "learners/supervised/picture_team.hpp"

#include <cstring>

#include "learners/data/picture_columns.hpp"
#include "learners/replicas/group_replicator.hpp"
#include "learners/replicas/membership.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

constexpr const char* kBetweenGroups = "The learner is between two groups.";

// A batch in words: rows (0: there is none), epoch, begin, positions, and the place after it.
constexpr std::size_t kWords = 7;
using Words = std::array<std::int64_t, kWords>;

Words words_of(const data::PictureBatch& batch) {
  const auto word = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  return {batch.batch.items(),      word(batch.epoch),       batch.begin,
          batch.positions,          word(batch.after.epoch), batch.after.committed,
          word(batch.after.corrupt)};
}

void set_words(data::PictureBatch& batch, const Words& words) {
  const auto count = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  batch.epoch = count(words[1]);
  batch.begin = words[2];
  batch.positions = words[3];
  batch.after = {count(words[4]), words[5], count(words[6])};
}

// Every replica calls with a tensor of its own: the first one with this.
std::vector<at::Tensor> of_replicas(const at::Tensor& first, int count) {
  std::vector<at::Tensor> tensors{first};
  while (static_cast<int>(tensors.size()) < count) tensors.push_back(first.clone());
  return tensors;
}

at::Tensor integers(const std::vector<std::int64_t>& values) {
  const at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<std::int64_t>());
  return tensor;
}

}  // namespace

Result<void> PictureTeam::form(const LearnerGroup& group) {
  replicator_.reset();  // leaves
  auto made = make_group_replicator(placement_, group);
  if (!made) return tl::unexpected(made.error());
  replicator_ = *std::move(made);
  group_ = group;
  return {};
}

Result<void> PictureTeam::step(const LocalReplicas::Work& work) {
  if (!replicator_) return fail(ErrorCode::kUnavailable, kBetweenGroups);
  return replicator_->step(work);
}

Result<void> PictureTeam::compare(std::uint64_t version,
                                  const std::function<std::uint64_t(int)>& hash_of) {
  if (!replicator_) return fail(ErrorCode::kUnavailable, kBetweenGroups);
  return compare_states(*replicator_, version, hash_of);
}

Result<void> PictureTeam::agree(States& states) {
  std::vector<std::int64_t> numbers = states.counters;
  numbers.insert(numbers.end(), {static_cast<std::int64_t>(place.epoch), place.committed,
                                 static_cast<std::int64_t>(place.corrupt)});
  // Each replica's list: what is equal, the numbers, and what every replica here has of its own.
  std::vector<std::vector<at::Tensor>> lists(states.equal.size());
  for (std::size_t r = 0; r < lists.size(); ++r) {
    std::vector<at::Tensor>& list = lists[r];
    for (const at::Tensor& tensor : states.equal[r]) list.push_back(tensor.clone());
    list.push_back(integers(numbers));
    for (const std::vector<at::Tensor>* own : states.own)
      for (const at::Tensor& tensor : *own) list.push_back(tensor.contiguous().clone());
  }
  std::vector<std::uint64_t> applied(lists.size(), states.updates);
  const Result<void> agreed = step([&](int i, ReplicaContext& context) {
    const auto index = static_cast<std::size_t>(i);
    return agree_on_state(context.collective(), applied[index], lists[index])
        .map([&](std::uint64_t updates) { applied[index] = updates; });
  });
  if (!agreed) return agreed;
  states.updates = applied.front();
  const std::size_t equal = states.equal.front().size();
  const auto* taken = lists.front()[equal].const_data_ptr<std::int64_t>();
  std::copy_n(taken, states.counters.size(), states.counters.begin());
  taken += states.counters.size();
  place = {static_cast<std::uint64_t>(taken[0]), taken[1], static_cast<std::uint64_t>(taken[2])};
  for (std::size_t r = 0; r < lists.size(); ++r) {
    for (std::size_t i = 0; i < equal; ++i) states.equal[r][i].copy_(lists[r][i]);
    const std::size_t count = states.own[r]->size();
    const auto first = lists[r].begin() + static_cast<std::ptrdiff_t>(equal + 1 + r * count);
    states.own[r]->assign(first, first + static_cast<std::ptrdiff_t>(count));
  }
  return {};
}

Result<const data::PictureBatch*> PictureTeam::share(const data::PictureBatch* batch) {
  if (!replicator_) return fail(ErrorCode::kUnavailable, kBetweenGroups);
  if (group_.size == 1) return batch;
  const bool gives = group_.rank == 0;
  const auto from_first = [&](const std::vector<at::Tensor>& tensors, const char* call) {
    return step([&](int i, ReplicaContext& context) {
      return context.collective().broadcast(std::span(&tensors[static_cast<std::size_t>(i)], 1), 0,
                                            call);
    });
  };
  Words words{};
  if (gives && batch != nullptr) words = words_of(*batch);
  const auto told = of_replicas(integers({words.begin(), words.end()}), local());
  if (auto done = from_first(told, "the batch in turn"); !done) return tl::unexpected(done.error());
  std::copy_n(told.front().const_data_ptr<std::int64_t>(), kWords, words.begin());
  if (words[0] == 0) return nullptr;
  if (!gives) {
    if (shared_.batch.items() != words[0])
      shared_.batch =
          replay::Batch(data::picture_columns(pictures_.side, pictures_.channels), words[0]);
    set_words(shared_, words);
    batch = &shared_;
  }
  for (int column = 0; column < 2; ++column) {
    const std::span<const std::uint8_t> bytes = batch->batch.bytes(column);
    const at::Tensor tensor = at::from_blob(const_cast<std::uint8_t*>(bytes.data()),
                                            {static_cast<std::int64_t>(bytes.size())}, at::kByte);
    if (auto done = from_first(of_replicas(tensor, local()), "pictures"); !done)
      return tl::unexpected(done.error());
  }
  return batch;
}

}  // namespace troupe::learners
