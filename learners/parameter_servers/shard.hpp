// The torch-free door to a parameter server: one server's part of an algorithm's parameters with
// its optimizer, which answers requests as bytes. A node that serves one loads the learning library
// with load_parameter_shards() (learners/loader.hpp). Belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "envs/spec/result.hpp"
#include "learners/learner.hpp"

namespace troupe::learners {

struct ParameterShardPlace {
  int server = 0, servers = 1;
  int workers = 1;                // that may send updates, numbered from 0
  std::uint64_t staleness = 16;   // updates by others since a worker took values, at most
  std::uint32_t incarnation = 0;  // of the server; grows with every restart
};

struct ParameterShardFigures {
  bool ready = false;         // has values
  std::uint64_t version = 0;  // updates applied, of all workers and lives
  std::uint64_t applied = 0;  // of them in this life
  std::uint64_t refused = 0, repeated = 0;
  std::uint64_t staleness_sum = 0, staleness_max = 0;  // of what was applied in this life
  std::int64_t bytes = 0;                              // of parameters
  double imbalance = 1;  // of all servers: the fullest one's bytes over the mean
};

class ParameterShard {
 public:
  virtual ~ParameterShard() = default;
  // Of a worker's request (parameter_servers/wire.hpp). Bytes that are none, and values that are
  // not those of this server, get an error as the answer.
  virtual std::vector<std::uint8_t> answer(std::span<const std::uint8_t> request) = 0;
  // Values, optimizer state and counts as they stand. O(shard).
  virtual Result<std::vector<std::uint8_t>> snapshot() const = 0;
  // Before anything else was asked. kCorrupt: no snapshot; kInvalidArgument: of another placement.
  virtual Result<void> restore(std::span<const std::uint8_t> snapshot) = 0;
  virtual ParameterShardFigures figures() const = 0;
};

// Only of "d4pg": kNotFound for others. kInvalidArgument where there are more servers than arrays.
Result<std::unique_ptr<ParameterShard>> make_parameter_shard(const std::string& algorithm,
                                                             const LearnerOptions& options,
                                                             const LearnerContext& context,
                                                             const ParameterShardPlace& place);

// Signature of the C symbol "troupe_make_parameter_shard" exported by libtroupe_learners.so.
using MakeParameterShard = Result<std::unique_ptr<ParameterShard>>(const std::string&,
                                                                   const LearnerOptions&,
                                                                   const LearnerContext&,
                                                                   const ParameterShardPlace&);

}  // namespace troupe::learners
