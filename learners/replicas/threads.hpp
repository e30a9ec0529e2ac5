// The threads that replicas run on. Owned and called by the learner's thread. Torch-free.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::learners {

// One thread per replica, asleep between rounds of work; the first replica has the owner's, which
// would only wait.
class ReplicaThreads {
 public:
  // `replicas` at least 1. `start(replica)` runs first on each thread (thread counts, for instance,
  // are per thread).
  ReplicaThreads(int replicas, std::function<void(int)> start);
  ~ReplicaThreads();
  ReplicaThreads(const ReplicaThreads&) = delete;
  ReplicaThreads& operator=(const ReplicaThreads&) = delete;

  // Runs work(replica) on every thread and returns when all have ended. `work` must not throw.
  void run(const std::function<void(int)>& work);

 private:
  void loop(int replica);

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int)>* work_ = nullptr;
  std::uint64_t round_ = 0;
  int running_ = 0;
  bool ending_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace troupe::learners
