// The torch-free door to the learning library. A node that learns loads libtroupe_learners.so with
// load_learning_library() (learners/loader.hpp) and drives a Learner: batches in, reports and
// parameter sets out. One Learner belongs to one thread; it owns the threads of its replicas.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "envs/spec/files.hpp"
#include "envs/spec/result.hpp"
#include "envs/spec/spec.hpp"
#include "learners/collectives/request_link.hpp"
#include "learners/data/picture_batch.hpp"
#include "learners/options.hpp"
#include "models/inference/parameter_set.hpp"
#include "replay/batch.hpp"

namespace troupe::learners {

// What one update did. `metrics` holds finite-or-not numbers as they are (losses, gradient norms,
// mean Q, clipped shares): names are stable, documented at the algorithm.
struct UpdateReport {
  std::uint64_t version = 0;              // updates applied so far, this one included
  std::map<std::string, double> metrics;  // filled every options.metrics_every updates, else empty
  // New priorities, one per item, for prioritised tables; empty otherwise.
  std::vector<float> priorities;
  // The bits of every replica's state were compared after this update, and are equal.
  bool compared = false;
};

// Learners in processes of their own that apply every update together. The coordinator makes a new
// group whenever one comes, ends or hangs; `generation` grows with each.
struct LearnerGroup {
  int rank = 0, size = 1;
  std::uint32_t generation = 1;
  std::shared_ptr<RequestLink> rendezvous{};  // to the one table of the group
  // Of the asynchronous regimes: the group is number `worker` of those that send their updates to
  // parameter servers, which its rank 0 reaches through `servers`, a link each.
  bool asynchronous = false;
  int worker = 0;
  std::vector<std::shared_ptr<RequestLink>> servers{};
};

// What a group has sent to its parameter servers, summed over them, since it was joined.
struct UpdatesSent {
  std::uint64_t sent = 0, rolled_back = 0, refused = 0;
};

struct LearnerContext {
  EnvSpec spec;
  std::uint64_t seed = 0;      // the learner's stream, from stream_seed(run seed, "learner")
  std::uint32_t epoch = 0;     // given by the coordinator, grows with every restart
  bool deterministic = false;  // fixed thread counts and code paths
  PictureSpec pictures;        // of learners from pictures, instead of `spec`
};

class Learner {
 public:
  virtual ~Learner() = default;

  // Columns the learner wants in its batches, without the item axis, and items per batch: of the
  // global batch, or of this learner's part of it while it is in a group.
  virtual std::vector<Column> batch_columns() const = 0;
  virtual std::int64_t batch_size() const = 0;

  // One synchronous update over the global batch, split evenly over the replicas of the group.
  // kNotFinite: the loss or a gradient is not finite; parameters are as they were before the call,
  // in every learner. Other errors of a learner in a group say that the group is over: join() the
  // next one. Of an asynchronous group it is what this group's batch says, and applied by settle().
  virtual Result<UpdateReport> update(const replay::Batch& batch) = 0;

  // Leaves its group and makes every update together with the learners of `group` from here on. All
  // of them take parameters, optimizer state and counters from the lowest rank that has applied
  // most updates; batch_size() is this one's share of the global batch, and the generation becomes
  // the epoch of its parameter sets. Waits for the others, no longer than options.timeout; after an
  // error the learner is in no group and its state is as it was. An asynchronous group begins with
  // settle(), which takes the servers' values.
  virtual Result<void> join(const LearnerGroup& /*group*/) {
    return fail(ErrorCode::kInvalidArgument, "This learner trains alone.");
  }
  // Whether every learner of the group has said `ready` in this round: they call it together, and
  // who waits for its data says false, so that nobody takes it for dead. Errors as of update().
  virtual Result<bool> all_ready(bool ready) { return ready; }
  // Of learners from pictures, called by all of a group together: what rank 0 has in turn, null
  // while that is nothing, comes to every other learner, whole; update() takes this one's rows of
  // it. What comes back lives until the next call. Errors as of update().
  virtual Result<const data::PictureBatch*> share(const data::PictureBatch* batch) { return batch; }
  // Where such a learner is in its data set goes with its state: join() agrees on both.
  virtual void set_place(const data::DataPlace& /*place*/) {}
  virtual data::DataPlace place() const { return {}; }
  // After each join() and update(), by every learner of the group, until it returns true: only then
  // do its version and parameters count. False: a parameter server does not answer now. Waits
  // no longer than options.timeout. Errors as of update().
  virtual Result<bool> settle() { return true; }
  // Takes what other workers have made of the parameters, for one that is idle: a group of one
  // learner only, others stay as they are.
  virtual void refresh() {}
  virtual UpdatesSent updates_sent() const { return {}; }
  // Of the parameter sets of an asynchronous learner, from here on.
  virtual void set_epoch(std::uint32_t /*epoch*/) {}

  // The policy (and normaliser) as of now. Cheap enough to call every few hundred updates: one
  // copy.
  virtual models::ParameterSetPtr parameters() const = 0;

  // Observation statistics gathered by environment actors since their last message; ignored when
  // the normaliser is off.
  virtual Result<void> merge_observations(std::span<const std::uint8_t> normaliser_delta) = 0;

  virtual std::uint64_t version() const = 0;
  // 64-bit hash of every parameter and optimizer bit of replica `index`: equal on all replicas.
  virtual std::uint64_t state_hash(int replica) const = 0;
  virtual int replicas() const = 0;

  // The state as the files of a checkpoint, for writing in any thread: parameters.safetensors,
  // optimizer.safetensors and learner.json. O(parameters); touches no disk.
  virtual Result<std::vector<FileContent>> snapshot() const = 0;
  // Writes the snapshot into an existing directory.
  Result<void> save(const std::filesystem::path& directory) const {
    return snapshot().and_then([&](const auto& files) { return write_files(directory, files); });
  }
  // Restores counters, schedules and RNG too, bit for bit.
  virtual Result<void> load(const std::filesystem::path& directory) = 0;
};

// "d4pg" | "resnet" | "sngan" | "null" (a learner that only counts; for throughput measurements of
// the other roles).
Result<std::unique_ptr<Learner>> make_learner(const std::string& algorithm,
                                              const LearnerOptions& options,
                                              const LearnerContext& context);

// Signature of the C symbol "troupe_make_learner" exported by libtroupe_learners.so.
using MakeLearner = Result<std::unique_ptr<Learner>>(const std::string&, const LearnerOptions&,
                                                     const LearnerContext&);

}  // namespace troupe::learners
