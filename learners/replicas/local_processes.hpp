// Several processes of one computation on this host, without a coordinator: forked children that
// ask their parent through pipes. For programs of one's own, examples, measurements and tests; runs
// of `troupe` bring their own processes. Torch-free.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "learners/collectives/rendezvous.hpp"

namespace troupe::learners {

// A child process and, once it was waited for, how it ended.
struct LocalProcess {
  pid_t id = -1;
  int status = -1;  // as waitpid gives it; -1: not waited for

  bool clean() const;  // ended with exit code 0
  bool killed_by(int signal) const;
  void wait();  // once; later calls do nothing
};

struct LocalProcessOptions {
  // Answers what children ask, in threads of the parent; by default a rendezvous of this call.
  std::function<std::vector<std::uint8_t>(std::span<const std::uint8_t>)> answer{};
  // Runs in the parent once all children run.
  std::function<void(std::vector<LocalProcess>&)> meanwhile{};
};

// Runs work(index, link) in `count` children, whose result is their exit code, and waits for all;
// the links may be used by several threads. A fork has one thread: the caller has started none that
// holds a lock. std::system_error when the system gives no process.
std::vector<LocalProcess> run_local_processes(
    int count, const std::function<int(int, std::shared_ptr<RequestLink>)>& work,
    const LocalProcessOptions& options = {});

}  // namespace troupe::learners
