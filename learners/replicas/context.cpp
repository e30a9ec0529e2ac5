// Implements the primitives over a Collective.
#include "learners/replicas/context.hpp"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string_view>

#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

Tensors copies_of(const Tensors& tensors) {
  Tensors copies;
  for (const at::Tensor& tensor : tensors)
    copies.push_back(tensor.detach().clone(at::MemoryFormat::Contiguous));
  return copies;
}

// Sums over replicas, forward and backward.
class Summed : public torch::autograd::Function<Summed> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* saved, const at::Tensor& tensor,
                            std::int64_t collective, const std::string& call) {
    saved->saved_data["collective"] = collective;
    saved->saved_data["call"] = call;
    return summed(tensor, collective, call);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* saved,
                                                 const torch::autograd::variable_list& gradients) {
    return {summed(gradients[0], saved->saved_data["collective"].toInt(),
                   saved->saved_data["call"].toStringRef() + " backward"),
            {},
            {}};
  }

 private:
  static at::Tensor summed(const at::Tensor& tensor, std::int64_t collective,
                           const std::string& call) {
    const Tensors sum = copies_of({tensor});
    must(reinterpret_cast<Collective*>(collective)->all_reduce(sum, ReduceOp::kSum, call));
    return sum[0];
  }
};

}  // namespace

void must(const Result<void>& result) {
  if (!result) throw CollectiveError(result.error());
}

ReplicaContext::ReplicaContext(const ReplicaPlace& place, std::unique_ptr<Collective> collective,
                               std::vector<at::Device> devices, std::shared_ptr<Regime> regime,
                               std::unique_ptr<Collective> gradients)
    : place_(place),
      collective_(std::move(collective)),
      gradients_(std::move(gradients)),
      devices_(std::move(devices)),
      regime_(std::move(regime)) {}

at::Device ReplicaContext::logical_device(int index) const {
  if (index < 0 || index >= logical_devices())
    throw std::out_of_range("There is no logical device " + std::to_string(index) +
                            "; replicas have " + std::to_string(logical_devices()) + ".");
  return devices_[static_cast<std::size_t>(index)];
}

std::string ReplicaContext::call_at(Where where) const {
  std::string_view file = where.file_name();
  file.remove_prefix(std::min(file.size(), file.find_last_of('/') + 1));
  return std::string(file) + ":" + std::to_string(where.line()) + " in step " +
         std::to_string(step_);
}

at::Tensor ReplicaContext::all_reduce(const at::Tensor& tensor, ReduceOp op, Where where) {
  return all_reduce(Tensors{tensor}, op, where)[0];
}

Tensors ReplicaContext::all_reduce(const Tensors& tensors, ReduceOp op, Where where) {
  bool differentiable =
      c10::GradMode::is_enabled() && (op == ReduceOp::kSum || op == ReduceOp::kMean);
  bool any = false;
  for (const at::Tensor& tensor : tensors) any = any || tensor.requires_grad();
  differentiable = differentiable && any;
  if (!differentiable) {
    Tensors reduced = copies_of(tensors);
    must(collective_->all_reduce(reduced, op, call_at(where)));
    return reduced;
  }
  Tensors reduced;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor sum =
        Summed::apply(tensors[i], reinterpret_cast<std::int64_t>(collective_.get()),
                      call_at(where) + ", tensor " + std::to_string(i));
    reduced.push_back(op == ReduceOp::kMean ? sum / replicas_in_sync() : sum);
  }
  return reduced;
}

at::Tensor ReplicaContext::all_gather(const at::Tensor& tensor, Where where) {
  return all_gather(Tensors{tensor}, where)[0];
}

Tensors ReplicaContext::all_gather(const Tensors& tensors, Where where) {
  Result<Tensors> gathered = collective_->all_gather(copies_of(tensors), call_at(where));
  if (!gathered) throw CollectiveError(gathered.error());
  return *std::move(gathered);
}

at::Tensor ReplicaContext::broadcast(const at::Tensor& tensor, int from, Where where) {
  return broadcast(Tensors{tensor}, from, where)[0];
}

Tensors ReplicaContext::broadcast(const Tensors& tensors, int from, Where where) {
  Tensors values = copies_of(tensors);
  must(collective_->broadcast(values, from, call_at(where)));
  return values;
}

std::unique_ptr<ReplicaOptimizer> ReplicaContext::wrap_optimizer(const Tensors& parameters,
                                                                 const OptimizerFactory& factory,
                                                                 Where where) {
  if (parameters.empty()) throw std::invalid_argument("An optimizer needs parameters.");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& parameter = parameters[i];
    const std::string which = "Parameter " + std::to_string(i) + " of the optimizer ";
    if (!parameter.defined() || !parameter.requires_grad() || !parameter.is_leaf())
      throw std::invalid_argument(which + "is no leaf that requires gradients.");
    if (!owned_.insert(parameter.unsafeGetTensorImpl()).second)
      throw std::invalid_argument(which + "belongs to another wrapped optimizer already.");
  }
  return regime_->wrap(*this, parameters, factory, optimizers_++, where);
}

}  // namespace troupe::learners
