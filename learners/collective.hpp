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
#include "learners/collectives/elements.hpp"

namespace troupe::learners {

// How long a rank waits for the others before the group fails.
inline constexpr std::chrono::milliseconds kCollectiveTimeout = std::chrono::minutes(2);

// Tensors are contiguous and on the CPU; what is reduced is f32, f64, i32, i64, f16 or bf16. After
// an error the group stays failed: who wants to go on makes a new one. `call` names the call site
// in messages and must be the same on every rank.
//
// Implementations: collectives/in_process.hpp (threads), shared_memory.hpp (processes of a host),
// gloo.hpp (c10d), ring.hpp (byte links), hierarchical.hpp (threads, then processes).
class Collective {
 public:
  virtual ~Collective() = default;  // leaves the group
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // In place, over all ranks, elementwise. Equal inputs give equal bits, the same on every rank:
  // the order of additions depends on the implementation and the sizes alone.
  virtual Result<void> all_reduce(std::span<const at::Tensor> tensors, ReduceOp op,
                                  std::string_view call) = 0;
  // Per tensor: [size()] + its shape.
  virtual Result<std::vector<at::Tensor>> all_gather(std::span<const at::Tensor> tensors,
                                                     std::string_view call) = 0;
  // Rank `from`'s values into everyone's tensors.
  virtual Result<void> broadcast(std::span<const at::Tensor> tensors, int from,
                                 std::string_view call) = 0;
  // Says that this rank makes no further call; whoever waits for it gets an error with `reason`.
  // Any thread, also during a call.
  virtual void leave(std::string_view reason) = 0;
  // Threads of one driver work in rounds: it sets every rank active before a round, each rank sets
  // itself inactive at the round's end. Who then waits for an inactive rank gets an error at once.
  // Ranks of other processes are not seen by this and ranks start active.
  virtual void set_active(bool /*active*/) {}
};

}  // namespace troupe::learners
