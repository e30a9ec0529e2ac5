// What replicas do together. If one replica makes a call, every replica makes it, in the same
// order, with equal shapes; anything else is an error on every rank that names the call. Each
// rank's object belongs to that rank's thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::learners {

enum class ReduceOp { kSum, kMean, kMin, kMax };

// Tensors are contiguous, on the CPU, f32, f64 or i64. After an error the group stays failed: who
// wants to go on makes a new one. `call` names the call site in messages.
class Collective {
 public:
  virtual ~Collective() = default;  // leaves the group
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // In place, over all ranks, elementwise, always added in the order of the ranks: equal inputs
  // give equal bits, the same on every rank.
  virtual Result<void> all_reduce(std::span<const at::Tensor> tensors, ReduceOp op,
                                  std::string_view call) = 0;
  // Per tensor: [size()] + its shape.
  virtual Result<std::vector<at::Tensor>> all_gather(std::span<const at::Tensor> tensors,
                                                     std::string_view call) = 0;
  // Rank `from`'s values into everyone's tensors.
  virtual Result<void> broadcast(std::span<const at::Tensor> tensors, int from,
                                 std::string_view call) = 0;
  // Says that this rank makes no further call; whoever waits for it gets an error.
  virtual void leave() = 0;
};

// One Collective per thread of this process. A rank waits at most `timeout` for the others.
std::vector<std::unique_ptr<Collective>> make_in_process_group(
    int size, std::chrono::milliseconds timeout = std::chrono::minutes(2));

}  // namespace troupe::learners
