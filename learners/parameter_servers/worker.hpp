// A worker's side of one parameter server: sends each update once, however often servers die, and
// keeps the count. Belongs to the worker's thread.
#pragma once

#include <chrono>
#include <memory>

#include "learners/parameter_servers/service.hpp"

namespace troupe::learners {

// sent = applied (as the server counts) + rolled_back, exactly, after every update.
struct UpdateLedger {
  std::uint64_t sent = 0;         // updates that a server applied
  std::uint64_t rolled_back = 0;  // of them, lost with a server that came back from a snapshot
  std::uint64_t refused = 0;      // updates that were too stale; not sent
  std::uint64_t rebirths = 0;     // of the server
};

class ParameterWorker {
 public:
  // Waits at most `patience` for a server that does not answer.
  ParameterWorker(std::shared_ptr<ParameterService> service, WorkerId id,
                  std::chrono::milliseconds patience);

  // Waits until the shard has values and takes them; `first` gives it some if it has none.
  Result<std::vector<at::Tensor>> begin(const std::vector<at::Tensor>* first);
  // Sends one update and returns the values after it; also when it was refused as stale. After an
  // error the same gradients may be given again: they are applied once.
  Result<std::vector<at::Tensor>> update(const std::vector<at::Tensor>& gradients);

  // The values as they are now, between two updates.
  Result<std::vector<at::Tensor>> refresh();

  const UpdateLedger& ledger() const { return ledger_; }
  std::uint64_t version() const { return version_; }  // of the server's values that were last taken

 private:
  using Clock = std::chrono::steady_clock;
  // Whom we speak with now, and what of ours it holds. True: it holds the update under way.
  Result<bool> reconcile(Clock::time_point deadline);
  Result<ServerState> ask_state(Clock::time_point deadline);
  Result<std::vector<at::Tensor>> values_again(Clock::time_point deadline);

  std::shared_ptr<ParameterService> service_;
  WorkerId id_;
  std::chrono::milliseconds patience_;
  std::uint32_t incarnation_ = 0;  // of the server
  std::uint64_t version_ = 0;      // of the values that we hold
  std::uint64_t seen_ = 0;         // the server's, when it last told its state
  std::uint64_t sequence_ = 0;     // of the last update that is known to have been applied
  bool arrived_ = false;           // the update under way; only the values after it are missing
  UpdateLedger ledger_;
};

}  // namespace troupe::learners
