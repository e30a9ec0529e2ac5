// A ResNet in stages on logical devices, a thread each: micro-batches go through them as through a
// pipeline (Huang et al. 2019, arXiv:1811.06965), and a stage prefers the way back to the way
// forth, so that no more are under way at once than there are stages (Narayanan et al. 2019,
// arXiv:1806.03377). Belongs to one thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "learners/replicas/threads.hpp"
#include "models/image/resnet.hpp"

namespace troupe::learners {

class ResNetPipeline {
 public:
  // A stage for each device, with parts of the model as equal in number as can be; each computes
  // with `threads` threads. `model` outlives it. kInvalidArgument without a device, and for more
  // devices than parts.
  static Result<std::unique_ptr<ResNetPipeline>> create(const models::ResNet& model,
                                                        const std::vector<at::Device>& devices,
                                                        int threads);

  ~ResNetPipeline();

  // The loss of a micro-batch from its logits [B, classes], a number with a graph. Called on the
  // last stage's thread, in the order of the micro-batches.
  using Loss = std::function<at::Tensor(std::size_t micro_batch, const at::Tensor& logits)>;
  // Takes parameters and batch statistics from `arrays`, and leaves there the sum of the
  // micro-batches' gradients and the statistics moved by each of them in turn: with as many
  // threads, the bits that one device gives which takes the micro-batches [B, channels, H, W] one
  // after the other. Throws what a stage or the loss throws; `arrays` is then as before.
  void run(models::ImageArrays& arrays, const std::vector<at::Tensor>& micro_batches,
           const Loss& loss);

  std::size_t stages() const { return stages_.size(); }

 private:
  struct Stage;
  ResNetPipeline(const models::ResNet& model, const std::vector<at::Device>& devices, int threads);
  void take(const models::ImageArrays& arrays);
  void give(models::ImageArrays& arrays) const;
  void work(std::size_t index, std::size_t micro_batches, const Loss& loss);
  // False: another stage has failed.
  bool step(std::size_t index, const Loss& loss);
  void forward(std::size_t index, const at::Tensor& input, const Loss& loss);
  void backward(std::size_t index, const at::Tensor& slope);
  // Hands a tensor to a neighbour; `inbox` is one of Stage's.
  void send(std::size_t to, std::deque<at::Tensor> Stage::*inbox, const at::Tensor& tensor);

  const models::ResNet& model_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::exception_ptr failure_;  // the first; under the mutex
  ReplicaThreads threads_;      // last: they end before what they use
};

}  // namespace troupe::learners
