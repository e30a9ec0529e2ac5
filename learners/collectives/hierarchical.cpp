// Implements the two levels. Thread 0 is the one that speaks with the other processes; what it
// learns there, errors too, the others get from it inside the process.
#include "learners/collectives/hierarchical.hpp"

#include "learners/collectives/call.hpp"
#include "learners/collectives/in_process.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

class Hierarchical final : public Collective {
 public:
  Hierarchical(std::unique_ptr<Collective> local, std::shared_ptr<Collective> between)
      : local_(std::move(local)), between_(std::move(between)) {}
  ~Hierarchical() override { leave({}); }

  int rank() const override { return between_->rank() * local_->size() + local_->rank(); }
  int size() const override { return between_->size() * local_->size(); }

  Result<void> all_reduce(std::span<const at::Tensor> tensors, ReduceOp op,
                          std::string_view call) override {
    const bool mean = op == ReduceOp::kMean;
    const ReduceOp part = mean ? ReduceOp::kSum : op;
    Result<void> done =
        seen(local_->all_reduce(tensors, part, call))
            .and_then([&] {
              return leads() ? seen(between_->all_reduce(tensors, part, call)) : Result<void>{};
            })
            .and_then([&] { return seen(local_->broadcast(tensors, 0, call)); });
    if (done && mean)
      for (const at::Tensor& tensor : tensors) divide(elements_of(tensor), size());
    return done;
  }

  Result<std::vector<at::Tensor>> all_gather(std::span<const at::Tensor> tensors,
                                             std::string_view call) override {
    Result<std::vector<at::Tensor>> inside = local_->all_gather(tensors, call);
    if (!inside) return stop(inside.error());
    // [processes, local] + shape, made by thread 0 and copied by the others.
    std::vector<at::Tensor> all;
    if (leads()) {
      Result<std::vector<at::Tensor>> gathered = between_->all_gather(*inside, call);
      if (!gathered) return stop(gathered.error());
      all = *std::move(gathered);
    } else {
      for (const at::Tensor& tensor : *inside) {
        std::vector<std::int64_t> shape = tensor.sizes().vec();
        shape.insert(shape.begin(), between_->size());
        all.push_back(at::empty(shape, tensor.options()));
      }
    }
    if (Result<void> shared = seen(local_->broadcast(all, 0, call)); !shared)
      return tl::unexpected(shared.error());
    for (at::Tensor& tensor : all) tensor = tensor.flatten(0, 1);
    return all;
  }

  Result<void> broadcast(std::span<const at::Tensor> tensors, int from,
                         std::string_view call) override {
    if (from < 0 || from >= size())
      // Every rank learns it, with the sentence that the level below has for it.
      return seen(local_->broadcast(tensors, from < 0 ? from : from + local_->size(), call));
    const int process = from / local_->size(), thread = from % local_->size();
    // In every process, so that the calls agree; outside `process` its values are overwritten.
    return seen(local_->broadcast(tensors, thread, call))
        .and_then([&] {
          return leads() ? seen(between_->broadcast(tensors, process, call)) : Result<void>{};
        })
        .and_then([&] { return seen(local_->broadcast(tensors, 0, call)); });
  }

  void leave(std::string_view reason) override {
    local_->leave(reason);
    // A thread that merely ends leaves the others their processes.
    if (leads() || !reason.empty()) between_->leave(reason);
  }
  void set_active(bool active) override { local_->set_active(active); }

 private:
  bool leads() const { return local_->rank() == 0; }

  tl::unexpected<Error> stop(const Error& error) {
    leave(error.message);
    return tl::unexpected(error);
  }
  // Tells the other level of an error.
  Result<void> seen(Result<void> result) {
    if (!result) return stop(result.error());
    return result;
  }

  std::unique_ptr<Collective> local_;
  std::shared_ptr<Collective> between_;  // thread 0 calls; the others ask rank and size, and leave
};

}  // namespace

Result<std::vector<std::unique_ptr<Collective>>> make_hierarchical_group(
    int local, std::unique_ptr<Collective> between, std::chrono::milliseconds timeout) {
  const std::vector<at::Tensor> mine = {at::full({1}, local, at::kLong)};
  const Result<std::vector<at::Tensor>> counts = between->all_gather(mine, "replicas of processes");
  if (!counts) return tl::unexpected(counts.error());
  const auto* count = counts->front().const_data_ptr<std::int64_t>();
  for (int process = 0; process < between->size(); ++process)
    if (count[process] != local)
      return fail(ErrorCode::kInvalidArgument,
                  "Process " + std::to_string(process) + " has " + std::to_string(count[process]) +
                      " replicas and process " + std::to_string(between->rank()) + " has " +
                      std::to_string(local) + "; all must have the same number.");
  const int first = between->rank() * local;
  const std::shared_ptr<Collective> shared = std::move(between);
  std::vector<std::unique_ptr<Collective>> ranks;
  for (std::unique_ptr<Collective>& thread : make_in_process_group(local, timeout, first))
    ranks.push_back(std::make_unique<Hierarchical>(std::move(thread), shared));
  return ranks;
}

}  // namespace troupe::learners
