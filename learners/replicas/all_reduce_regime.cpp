// The synchronous regime: gradients averaged and applied alike on every replica.
#include "learners/replicas/gradient_reducer.hpp"
#include "models/torch_precompiled.hpp"

namespace troupe::learners {
namespace {

class AllReduceOptimizer final : public ReplicaOptimizer {
 public:
  AllReduceOptimizer(ReplicaContext& context, const Tensors& parameters,
                     const OptimizerFactory& factory, const GradientOptions& options, int index,
                     std::source_location where)
      : context_(context),
        flat_(flatten(parameters)),
        reducer_(flat_, context.gradient_collective(), options),
        optimizer_(factory(parameters)),
        index_(index) {
    Tensors values;
    for (const FlatTensors& flat : flat_) values.push_back(flat.values());
    must(context_.collective().broadcast(values, 0, context_.call_at(where)));
  }

  void zero_grad() override {
    reducer_.begin("gradients of optimizer " + std::to_string(index_) + " in step " +
                   std::to_string(context_.step()));
    for (FlatTensors& flat : flat_) flat.zero_gradients();
  }
  void step(std::source_location where) override {
    for (FlatTensors& flat : flat_) flat.collect_gradients();
    must(reducer_.finish(context_.call_at(where)));
    optimizer_->step();
  }

 private:
  ReplicaContext& context_;
  std::vector<FlatTensors> flat_;
  GradientReducer reducer_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  int index_;
};

class AllReduceRegime final : public Regime {
 public:
  explicit AllReduceRegime(const GradientOptions& options) : options_(options) {}
  std::unique_ptr<ReplicaOptimizer> wrap(ReplicaContext& context, const Tensors& parameters,
                                         const OptimizerFactory& factory, int index,
                                         std::source_location where) override {
    return std::make_unique<AllReduceOptimizer>(context, parameters, factory, options_, index,
                                                where);
  }

 private:
  GradientOptions options_;
};

}  // namespace

std::shared_ptr<Regime> make_all_reduce_regime(const GradientOptions& options) {
  return std::make_shared<AllReduceRegime>(options);
}

}  // namespace troupe::learners
