// What the step function of one replica knows about its place among the replicas, and what it can
// do with the others (the model of TF-Replicator, arXiv:1902.00465). Given to each replica once;
// used by its thread only.
//
// If one replica calls a primitive, every replica in sync calls it, from the same line, in the same
// order, with equal structure, types and shapes. Anything else, a replica that throws, returns
// early or dies included, is a CollectiveError on every one of them that names the line; none waits
// for ever. A step function may let it pass: the driver (replicator.hpp, local_replicas.hpp) makes
// it the result of the step.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "learners/collective.hpp"

namespace troupe::learners {

using Tensors = std::vector<at::Tensor>;

// An error as an exception, because step functions live among LibTorch's.
class CollectiveError : public std::runtime_error {
 public:
  explicit CollectiveError(Error error)
      : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

// Where a replica stands. Replicas in sync are a group of consecutive ids.
struct ReplicaPlace {
  int id = 0, replicas = 1;  // in all
  int process = 0, processes = 1;
  int group = 0, groups = 1;  // of replicas in sync
};

// Makes an optimizer over the parameters that it is given, which may be part of a replica's.
using OptimizerFactory =
    std::function<std::unique_ptr<torch::optim::Optimizer>(const Tensors& parameters)>;

// Any optimizer of torch::optim: optimizer<torch::optim::SGD>(torch::optim::SGDOptions(0.1)).
template <class Optimizer, class Options>
OptimizerFactory optimizer(const Options& options) {
  return [options](const Tensors& parameters) {
    return std::make_unique<Optimizer>(parameters, options);
  };
}

// An optimizer over all replicas, from ReplicaContext::wrap_optimizer.
class ReplicaOptimizer {
 public:
  virtual ~ReplicaOptimizer() = default;
  // Sets the gradients of its parameters to zero; they stay defined.
  virtual void zero_grad() = 0;
  // Averages the gradients over the replicas in sync and applies them: a call of every replica. A
  // parameter without a gradient counts as having a zero one.
  virtual void step(std::source_location where = std::source_location::current()) = 0;
};

class ReplicaContext;

// How gradients become updates: averaged and applied alike by every replica, or sent to servers.
class Regime {
 public:
  virtual ~Regime() = default;
  // `index`: optimizers that the replica wrapped before.
  virtual std::unique_ptr<ReplicaOptimizer> wrap(ReplicaContext& context, const Tensors& parameters,
                                                 const OptimizerFactory& factory, int index,
                                                 std::source_location where) = 0;
  // A replica goes no further: who waits for it outside of collectives has to know.
  virtual void leave(std::string_view /*reason*/) {}
};

// How averaged gradients travel; see gradient_reducer.hpp.
struct GradientOptions {
  // Gradients are reduced in runs of at least so many bytes, each as soon as the backward pass has
  // filled it, by a thread beside the replica's; 0: all in one call at the end.
  std::int64_t bucket_bytes = 0;
  // What f32 gradients travel as: kFloat, kHalf or kBFloat16. What rounding takes away is added to
  // the next gradient (error feedback; Seide et al. 2014, Karimireddy et al. 2019).
  at::ScalarType travel_as = at::kFloat;
};

// Every replica holds parameters and optimizer, and applies what is averaged over its group.
std::shared_ptr<Regime> make_all_reduce_regime(const GradientOptions& options = {});

class ReplicaContext {
 public:
  // `collective` is that of the replicas in sync; `devices` are the logical ones, at least one.
  // `gradients` is another one of the same replicas, for gradients that are reduced in buckets.
  ReplicaContext(const ReplicaPlace& place, std::unique_ptr<Collective> collective,
                 std::vector<at::Device> devices = {at::kCPU},
                 std::shared_ptr<Regime> regime = make_all_reduce_regime(),
                 std::unique_ptr<Collective> gradients = nullptr);

  int id() const { return place_.id; }
  int replicas() const { return place_.replicas; }
  int id_in_sync() const { return collective_->rank(); }
  int replicas_in_sync() const { return collective_->size(); }
  const ReplicaPlace& place() const { return place_; }

  // The device that part `index` of the model is put on; inputs lie on that of 0. Throws
  // std::out_of_range.
  at::Device logical_device(int index) const;
  int logical_devices() const { return static_cast<int>(devices_.size()); }

  using Where = std::source_location;
  // New tensors, elementwise over the replicas in sync; arguments stay as they are. Sums and means
  // can be differentiated: the gradient of a sum over replicas is the sum of their gradients.
  at::Tensor all_reduce(const at::Tensor& tensor, ReduceOp op, Where where = Where::current());
  Tensors all_reduce(const Tensors& tensors, ReduceOp op, Where where = Where::current());
  // [replicas_in_sync()] + shape, in the order of the replicas.
  at::Tensor all_gather(const at::Tensor& tensor, Where where = Where::current());
  Tensors all_gather(const Tensors& tensors, Where where = Where::current());
  // The value that replica `from` (counted in sync) has; evaluated on all.
  at::Tensor broadcast(const at::Tensor& tensor, int from, Where where = Where::current());
  Tensors broadcast(const Tensors& tensors, int from, Where where = Where::current());

  // `parameters` are leaves that require gradients and belong to no other wrapped optimizer; all
  // replicas name them in the same order. They take replica 0's values, and from here on lie with
  // their gradients in one flat buffer per device and type (flat_tensors.hpp). Throws
  // std::invalid_argument.
  std::unique_ptr<ReplicaOptimizer> wrap_optimizer(const Tensors& parameters,
                                                   const OptimizerFactory& factory,
                                                   Where where = Where::current());

  // For code that works with results, in place on its own tensors.
  Collective& collective() { return *collective_; }
  Collective& gradient_collective() { return gradients_ ? *gradients_ : *collective_; }
  // The name of a call at `where` in the current step, for collective().
  std::string call_at(Where where) const;

  // What the driver says before each step; part of the name of every call, so that a replica one
  // step behind is no match.
  void begin_step(std::uint64_t number) { step_ = number; }
  std::uint64_t step() const { return step_; }
  void set_active(bool active) {
    collective_->set_active(active);
    if (gradients_) gradients_->set_active(active);
  }
  // Says that this replica goes no further. Any thread.
  void leave(std::string_view reason) {
    collective_->leave(reason);
    if (gradients_) gradients_->leave(reason);
    regime_->leave(reason);
  }

 private:
  ReplicaPlace place_;
  std::unique_ptr<Collective> collective_, gradients_;
  std::vector<at::Device> devices_;
  std::shared_ptr<Regime> regime_;
  std::unordered_set<const void*> owned_;  // parameters that have an optimizer
  int optimizers_ = 0;
  std::uint64_t step_ = 0;
};

// Throws what failed.
void must(const Result<void>& result);

}  // namespace troupe::learners
