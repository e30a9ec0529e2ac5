// The asynchronous regimes: groups of replicas that are in sync inside, each a worker of sharded
// parameter servers. A group of one replica is plain asynchronous SGD.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "learners/parameter_servers/placement.hpp"
#include "learners/parameter_servers/server.hpp"
#include "learners/parameter_servers/worker.hpp"

namespace troupe::learners {

// Server `server` of the optimizer with index `optimizer`, as a worker reaches it.
using ParameterServices =
    std::function<std::shared_ptr<ParameterService>(int optimizer, int server)>;

struct ParameterServerRegimeOptions {
  int servers = 1;
  std::uint64_t staleness = 16;
  std::uint32_t worker_incarnation = 0;
  std::chrono::milliseconds timeout = std::chrono::minutes(2);
  ParameterServices services{};  // none: in this process, made as they are needed
};

// What the workers of this process have counted.
struct ParameterServerReport {
  struct Shard {
    int optimizer = 0, server = 0, worker = 0;
    UpdateLedger ledger;
  };
  std::vector<Shard> shards{};
  std::map<int, Placement> placements{};  // by optimizer
};

// Placement is by whole parameters, largest first. Where there is more than one process, `services`
// leads to the others. Thread-safe; shared by the replicas of a process.
class ParameterServerRegime final : public Regime {
 public:
  explicit ParameterServerRegime(const ParameterServerRegimeOptions& options) : options_(options) {}

  std::unique_ptr<ReplicaOptimizer> wrap(ReplicaContext& context, const Tensors& parameters,
                                         const OptimizerFactory& factory, int index,
                                         std::source_location where) override;

  ParameterServerReport report() const;
  // Whoever waits for first values that this replica was to bring gets an error with the reason.
  void leave(std::string_view reason) override;

  // The servers that were made in this process, by (optimizer, server).
  std::map<std::pair<int, int>, std::shared_ptr<ParameterServer>> local_servers() const;

  // For the optimizers that it made.
  void note(int optimizer, int server, int worker, const UpdateLedger& ledger);

 private:
  std::shared_ptr<ParameterService> service(int optimizer, int server,
                                            const OptimizerFactory& factory);

  ParameterServerRegimeOptions options_;
  mutable std::mutex mutex_;
  std::map<std::pair<int, int>, std::shared_ptr<ParameterServer>> servers_;
  std::map<std::tuple<int, int, int>, UpdateLedger> ledgers_;
  std::map<int, Placement> placements_;
  std::string left_;  // why a replica left
};

}  // namespace troupe::learners
