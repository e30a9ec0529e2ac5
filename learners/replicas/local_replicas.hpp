// The replicas of one process, each on a thread of its own, driven in rounds. Belongs to the thread
// that drives.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "learners/replicas/context.hpp"
#include "learners/replicas/threads.hpp"

namespace troupe::learners {

class LocalReplicas {
 public:
  // `threads`: LibTorch's intra-op threads of each replica.
  LocalReplicas(std::vector<std::unique_ptr<ReplicaContext>> contexts, int threads);

  int size() const { return static_cast<int>(contexts_.size()); }
  ReplicaContext& context(int index) { return *contexts_[static_cast<std::size_t>(index)]; }

  // Runs work(index, context) on every replica's thread and returns when all have ended; `step` is
  // part of the names of the collective calls made in it, and the same in every process. What one
  // throws or returns as an error is the result; if several fail, the cause is preferred to its
  // echoes. A replica that fails leaves, so that those who wait for it, in other processes too, get
  // an error; one that ends while others wait for it in a collective is an error to them at once.
  // kNotFinite is no reason to leave: all replicas see it alike, and may go on.
  using Work = std::function<Result<void>(int, ReplicaContext&)>;
  Result<void> run(std::uint64_t step, const Work& work);

  // Makes every replica leave: the driver itself cannot go on.
  void leave(const std::string& reason);

 private:
  std::vector<std::unique_ptr<ReplicaContext>> contexts_;
  ReplicaThreads threads_;  // last: ends before what its work uses
};

}  // namespace troupe::learners
