// What workers ask of a parameter server: the seam between a group of replicas in sync and who
// holds a shard of parameters and optimizer state (Dean et al. 2012, asynchronous SGD; Ho et al.
// 2013, bounded staleness).
//
// Counting. A worker numbers its updates; a server applies each number at most once, whatever is
// sent again. A server that dies comes back from a snapshot with a higher incarnation, has
// forgotten what it applied since, and says how much of each worker's it holds. So at any moment
// when nothing is under way, for every worker and server, exactly:
//   sent = applied + rolled back
// Updates refused for their staleness are not sent; they are counted apart.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"

namespace troupe::learners {

// A worker is a group of replicas in sync; one that was started again has a higher incarnation and
// counts from 0.
struct WorkerId {
  int worker = 0;
  std::uint32_t incarnation = 0;
};

struct ServerState {
  bool ready = false;  // has values
  std::uint32_t incarnation = 0;
  std::uint64_t version = 0;        // updates applied, of all workers
  std::uint64_t applied = 0;        // of them the asking worker's, of this incarnation
  std::uint64_t last_sequence = 0;  // the highest of these
};

struct Push {
  WorkerId worker;
  std::uint64_t sequence = 0;            // counts from 1
  std::uint32_t server_incarnation = 0;  // whom the worker means
  std::uint64_t version = 0;             // of the values that the gradients belong to
  std::vector<at::Tensor> gradients{};   // one per parameter of the shard
};

enum class PushOutcome : std::uint8_t {
  kApplied,  // now or by an earlier push of the same sequence
  kStale,    // more updates by others since `version` than allowed: not applied
  kReborn,   // the server is another incarnation: not applied
};

struct PushReply {
  PushOutcome outcome = PushOutcome::kApplied;
  std::uint64_t version = 0;
  std::vector<at::Tensor> values{};  // as of `version`; none with kReborn
};

// Errors are kUnavailable or kTimeout: no answer, and whether the request was seen is unknown;
// kInvalidArgument: shapes or workers that do not fit.
class ParameterService {
 public:
  virtual ~ParameterService() = default;
  virtual Result<ServerState> state(WorkerId worker) = 0;
  // The first values of the shard; does nothing if it has some.
  virtual Result<void> initialise(const std::vector<at::Tensor>& values) = 0;
  virtual Result<std::vector<at::Tensor>> values() = 0;
  virtual Result<PushReply> push(const Push& push) = 0;
  // Bytes that workers leave for each other, such as what observations they have seen: the last
  // ones count, and are in the server's snapshots. kInvalidArgument: more than kMostKeptBytes.
  virtual Result<void> keep(std::span<const std::uint8_t> bytes) = 0;
  virtual Result<std::vector<std::uint8_t>> kept() = 0;
};

inline constexpr std::size_t kMostKeptBytes = std::size_t{1} << 20;

}  // namespace troupe::learners
