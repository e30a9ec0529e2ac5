// A parameter server: one shard of parameters with its optimizer. A plain class; an actor or a
// thread in the workers' process calls it. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "learners/parameter_servers/service.hpp"
#include "learners/replicas/context.hpp"

namespace troupe::learners {

struct ParameterServerOptions {
  std::uint64_t staleness = 16;   // updates by others since a worker took values, at most
  std::uint32_t incarnation = 0;  // grows with every restart
  int workers = 0;                // numbered from 0; others are refused. 0: any
};

struct ParameterServerTelemetry {
  std::uint64_t version = 0, refused = 0, repeated = 0;
  std::uint64_t applied = 0;                           // of `version`, in this life
  std::uint64_t staleness_sum = 0, staleness_max = 0;  // of what was applied
  std::int64_t bytes = 0;                              // of parameters
};

class ParameterServer final : public ParameterService {
 public:
  ParameterServer(OptimizerFactory factory, const ParameterServerOptions& options);

  Result<ServerState> state(WorkerId worker) override;
  Result<void> initialise(const std::vector<at::Tensor>& values) override;
  Result<std::vector<at::Tensor>> values() override;
  Result<PushReply> push(const Push& push) override;
  Result<void> keep(std::span<const std::uint8_t> bytes) override;
  Result<std::vector<std::uint8_t>> kept() override;

  // Values, optimizer state and counts, as they stand between two updates. O(shard).
  Result<std::vector<std::uint8_t>> snapshot() const;
  // Before anything else was called. kCorrupt: bytes that are no snapshot, or whose counts of
  // workers do not add up to its version.
  Result<void> restore(std::span<const std::uint8_t> snapshot);

  ParameterServerTelemetry telemetry() const;

 private:
  struct Worker {
    std::uint32_t incarnation = 0;
    std::uint64_t applied = 0, last_sequence = 0;
  };

  Worker& worker_of(WorkerId id);  // only adds up a dead incarnation's counts
  Result<void> known(WorkerId id) const;
  // Holds `values` with a new optimizer, in the saved state if there is one. Throws what that
  // throws, with nothing changed.
  Result<void> take(const std::vector<at::Tensor>& values, const std::string* state);
  Result<void> fits(const Push& push) const;
  std::vector<at::Tensor> copies() const;

  mutable std::mutex mutex_;
  OptimizerFactory factory_;
  ParameterServerOptions options_;
  Tensors parameters_;  // none: not initialised
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  std::map<int, Worker> workers_;
  std::uint64_t version_ = 0, retired_ = 0;  // applied in all; of them dead incarnations'
  std::vector<std::uint8_t> kept_;
  ParameterServerTelemetry telemetry_;
};

}  // namespace troupe::learners
