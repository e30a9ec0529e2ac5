// Averages the gradients of one optimizer over the replicas in sync: in one call after the backward
// pass, or in buckets while it still runs (Li et al. 2020, PyTorch DDP), with 16-bit floats on the
// way if asked for. Owned by one replica.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "learners/replicas/context.hpp"
#include "learners/replicas/flat_tensors.hpp"

namespace torch::autograd {
struct Node;
}

namespace troupe::learners {

// Sums of a bucket do not depend on the buckets: where a collective adds in the order of the ranks,
// the bits are those of one call.
class GradientReducer {
 public:
  // `flat` and `collective` outlive it. With buckets, `collective` is used by the thread alone.
  GradientReducer(std::vector<FlatTensors>& flat, Collective& collective,
                  const GradientOptions& options);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Before a backward pass, with gradients at zero: buckets may go from here on. `call` names them.
  void begin(const std::string& call);
  // After it: returns when all gradients are means. With buckets there was exactly one backward
  // pass since begin(); throws std::logic_error if a second one came too late for its gradients to
  // count.
  Result<void> finish(const std::string& call);

 private:
  struct Bucket {
    at::Tensor gradients;  // a run of a flat buffer
    at::Tensor residual;   // what rounding has taken; undefined without
    std::size_t missing = 0, parameters = 0;
  };
  class ReadyHook;

  void make_buckets(FlatTensors& flat);
  // Called by the backward pass, for each parameter once.
  void ready(std::size_t bucket, FlatTensors& flat, std::size_t parameter);
  void launch(std::unique_lock<std::mutex>& lock);
  Result<void> reduce(Bucket& bucket, const std::string& call) const;
  void run();

  Collective& collective_;
  GradientOptions options_;
  std::vector<Bucket> buckets_;  // in the order in which the backward pass fills them
  struct Hook {
    std::shared_ptr<torch::autograd::Node> accumulator;  // dies unless it is held
    std::uintptr_t key;
  };
  std::vector<Hook> hooks_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string call_;
  bool armed_ = false, late_ = false, ending_ = false;
  std::size_t launched_ = 0, reduced_ = 0;  // buckets of this pass
  Result<void> result_;
  std::jthread thread_;  // only with buckets; last: ends before what it uses
};

}  // namespace troupe::learners
