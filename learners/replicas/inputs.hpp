// Input pipelines of replicas: where a step's rows come from and who gets which.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "learners/replicas/context.hpp"
#include "learners/replicas/layout.hpp"

namespace troupe::learners {

// What an input function is told about its pipeline.
struct InputContext {
  int pipeline = 0, pipelines = 1;
  std::int64_t rows = 0;  // of each result
};

// The next inputs, each [rows] + shape; called by one thread at a time. kNotFound: there are no
// more.
using Pipeline = std::function<Result<Tensors>()>;
// Makes one pipeline. Different pipelines give different data; the function sees to that, by index.
using InputFunction = std::function<Pipeline(const InputContext&)>;

// The pipelines of one process, and those of others that feed it.
class Inputs {
 public:
  // `between` connects the processes and is needed for one pipeline in all and several processes.
  Inputs(const ReplicaLayout& layout, const std::string& mode, const InputFunction& function,
         std::unique_ptr<Collective> between);

  // Before a round: fetches what several replicas share. Called by the driver.
  Result<void> fetch();
  // The rows of local replica `index`. Called on the replica's thread.
  Result<Tensors> take(int index);
  // Tells other processes that wait for inputs.
  void leave(const std::string& reason);

 private:
  Result<Tensors> checked(const Pipeline& pipeline, const InputContext& context) const;
  Result<void> share(const Result<Tensors>& own);

  ReplicaLayout layout_;
  std::vector<InputContext> contexts_;
  std::vector<Pipeline> pipelines_;  // none: fed by process 0
  std::unique_ptr<Collective> between_;
  bool by_replica_ = false;
  Tensors rows_;  // of all local replicas, or of all in all
  std::int64_t first_row_ = 0;
};

}  // namespace troupe::learners
