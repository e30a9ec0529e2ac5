// The way of a D4PG worker's updates to its parameter servers, and of their values back. Belongs to
// the learner's thread.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "learners/d4pg/replica.hpp"
#include "learners/d4pg/slices.hpp"
#include "learners/learner.hpp"
#include "learners/parameter_servers/worker.hpp"

namespace troupe::learners {

// A call ends with kUnavailable or kTimeout when a server does not answer within `answer_within`,
// or when it has taken that long before it asks the next one: made again, it goes on where it was.
// So none takes longer than four times that.
class D4pgServerLink {
 public:
  // One link per server; the model outlives it.
  D4pgServerLink(const D4pgModel& model, const std::vector<std::shared_ptr<RequestLink>>& links,
                 WorkerId worker, std::chrono::milliseconds answer_within);

  // Gives servers without values those of `networks`, and takes what they hold.
  Result<void> begin(D4pgNetworks& networks);
  // Sends the gradients of `networks`, which stay as they are until it succeeds, each once to each
  // server, and takes the values after them.
  Result<void> update(D4pgNetworks& networks);
  // Takes the values as they are now.
  Result<void> refresh(D4pgNetworks& networks);

  // Updates that the first server had applied when its values were taken: the version of the run.
  std::uint64_t version() const { return shards_.front().worker.version(); }
  UpdateLedger ledger() const;  // sums over the servers

  // Bytes that all workers share, at the first server.
  Result<void> keep(std::span<const std::uint8_t> bytes) {
    return shards_.front().service->keep(bytes);
  }
  Result<std::vector<std::uint8_t>> kept() { return shards_.front().service->kept(); }

 private:
  struct Shard {
    std::vector<D4pgSlice> slices;
    std::shared_ptr<ParameterService> service;
    ParameterWorker worker;
    bool done = false;  // in the present round
  };
  // One call of each server that has not succeeded in this round, and its values.
  template <class Call>
  Result<void> round(D4pgNetworks& networks, Call call);
  Tensors of(D4pgNetworks& networks, const Shard& shard, bool gradients) const;

  const D4pgModel& model_;
  const std::chrono::milliseconds answer_within_;
  std::vector<Shard> shards_;
};

}  // namespace troupe::learners
