// Runs one replica's step function on all replicas (the model of TF-Replicator, arXiv:1902.00465).
// The user writes what one replica does; the options say how many there are and how they keep
// together, and the training loop stays the user's:
//
//   auto replicator = Replicator::make(options, {}, model, inputs);
//   while (...) auto losses = (*replicator)->step("train");
//
// learners/examples/regression.cpp is a whole program. Belongs to the thread that made it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "learners/replicas/inputs.hpp"
#include "learners/replicas/local_replicas.hpp"
#include "learners/replicas/processes.hpp"

namespace troupe::learners {

// One update of one replica: its rows of the inputs, on logical device 0, to whatever it reports.
using StepFunction = std::function<Tensors(const Tensors& inputs)>;
// By name: a GAN has one for its discriminator and one for its generator.
using StepFunctions = std::map<std::string, StepFunction>;
// Makes a replica's model, optimizers and step functions; called once on the replica's thread.
using ReplicaFunction = std::function<StepFunctions(ReplicaContext&)>;

class Replicator {
 public:
  // Every process makes the same call. Returns when all replicas stand. kInvalidArgument: options
  // that do not go together (layout.hpp), kUnavailable or kTimeout: a process did not come, and
  // whatever `model` threw on any replica.
  static Result<std::unique_ptr<Replicator>> make(const ReplicationOptions& options,
                                                  const Processes& processes,
                                                  const ReplicaFunction& model,
                                                  const InputFunction& inputs = {});
  ~Replicator();

  // One step of every replica; returns what those of this process reported. Errors are final and
  // come on every process; kNotFound: the inputs of this one are at an end.
  Result<std::vector<Tensors>> step(const std::string& name = "train");

  // One step as work of one's own, for code that moves no inputs as tensors and works with results.
  // kNotFinite from every replica is no end: all see it alike, and may go on.
  Result<void> step(const LocalReplicas::Work& work);

  // Outside of steps: work(index, context) on the threads of this process's replicas.
  Result<void> run(const std::function<void(int, ReplicaContext&)>& work);

  // Of an asynchronous regime; null in others.
  ParameterServerRegime* parameter_servers() { return servers_.get(); }
  const ReplicaLayout& layout() const { return layout_; }
  std::uint64_t steps() const { return steps_; }

 private:
  explicit Replicator(const ReplicaLayout& layout) : layout_(layout) {}
  // Says that this process cannot go on.
  tl::unexpected<Error> stop(const Error& error);

  ReplicaLayout layout_;
  std::shared_ptr<ParameterServerRegime> servers_;
  std::unique_ptr<Inputs> inputs_;  // none: steps have no inputs
  std::uint64_t steps_ = 0;
  std::vector<StepFunctions> functions_;  // of the local replicas
  std::unique_ptr<LocalReplicas> replicas_;
};

}  // namespace troupe::learners
