// Implements the replicas' threads.
#include "learners/replicas/threads.hpp"

namespace troupe::learners {

ReplicaThreads::ReplicaThreads(int replicas, std::function<void(int)> start) {
  start(0);
  for (int replica = 1; replica < replicas; ++replica)
    threads_.emplace_back([this, replica, start] {
      start(replica);
      loop(replica);
    });
}

ReplicaThreads::~ReplicaThreads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
}

void ReplicaThreads::run(const std::function<void(int)>& work) {
  if (threads_.empty()) return work(0);
  std::unique_lock lock(mutex_);
  work_ = &work;
  running_ = static_cast<int>(threads_.size());
  ++round_;
  wake_.notify_all();
  lock.unlock();
  work(0);
  lock.lock();
  done_.wait(lock, [this] { return running_ == 0; });
}

void ReplicaThreads::loop(int replica) {
  std::uint64_t finished = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return ending_ || round_ != finished; });
    if (ending_) return;
    finished = round_;
    const std::function<void(int)>& work = *work_;
    lock.unlock();
    work(replica);
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace troupe::learners
