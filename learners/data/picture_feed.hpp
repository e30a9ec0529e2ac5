// Batches of labelled pictures for a learner from data actors that come, go and die: leases of
// positions go out, pictures come back in any order, batches of consecutive positions leave in
// order. What the updates of a run see depends on seed and position alone, not on who delivered and
// when; a table of the replay, first in, first out, could not promise that.
//
//   data actor ──lease()──▶ positions        take() ──▶ batch ──next()──▶ learner ──commit()
//
// Every position of an epoch is in exactly one committed update. Leases go out for the batches
// ahead of the learner only: that bounds memory and holds data actors back. What was delivered
// stays when its data actor ends; what was not is leased again, first of all. Thread-safe.
#pragma once

#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "learners/data/lease_ledger.hpp"
#include "learners/data/loader.hpp"
#include "learners/data/picture_batch.hpp"
#include "learners/data/picture_columns.hpp"
#include "replay/signature.hpp"

namespace troupe::learners::data {

struct FeedOptions {
  std::int64_t size = 0;     // of the set
  std::int64_t batch = 1;    // positions; an epoch's last batch has what is left
  std::int64_t ahead = 1;    // batches that are filled beside the one in use, >= 1
  std::int64_t lease = 1;    // positions at most
  std::uint64_t epochs = 0;  // 0: without end
  int side = 0, channels = 0;
  std::int64_t classes = 0;
  std::uint32_t learner_epoch = 0;  // in leases and what comes back by them
  std::uint64_t fingerprint = 0;    // DataSet::fingerprint
};

// Of the chunks that data actors send: picture_columns and "position" i64, by step. Its hash is of
// the shape and the set.
replay::Signature picture_signature(const FeedOptions& options);

// Who has a lease: a data actor and its incarnation.
struct DataActor {
  std::uint32_t index = 0, incarnation = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the generated comparison's own zero
  auto operator<=>(const DataActor&) const = default;
};

// The label of a picture that could not be decoded.
inline constexpr std::int64_t kCorruptLabel = -1;
// A whole lease as a chunk of the signature. Positions that `pictures` lacks have kCorruptLabel.
replay::Chunk picture_chunk(const Lease& lease, const Pictures& pictures, const DataActor& actor,
                            const FeedOptions& options);

struct FeedFigures {
  std::uint64_t epoch = 0;     // the first one that is not over
  std::int64_t committed = 0;  // positions of it
  std::int64_t leased = 0;     // positions out with data actors, or delivered and not committed
  std::int64_t ready = 0;      // whole batches
  std::uint64_t corrupt = 0;   // committed without a picture, restored ones included
  std::uint64_t stale = 0;     // deliveries that came too late or twice
  std::uint64_t released = 0;  // positions taken back from data actors that ended
};

class PictureFeed {
 public:
  explicit PictureFeed(const FeedOptions& options);

  // Nothing: the batches ahead are all leased, or the actor has ended. An actor's earlier
  // incarnations end with the first call of a later one.
  std::optional<Lease> lease(const DataActor& actor);
  // A data actor's answer to a lease. False: nobody waits for it any more, which is no error.
  // kCorrupt for what contradicts the lease, or a label that is no class; nothing is changed then.
  Result<bool> take(const replay::Chunk& chunk);
  // This incarnation and those before it are over. Returns how many positions were out.
  std::int64_t end(const DataActor& actor);

  // The next batch in order, null when none is whole within `timeout`. It is the caller's until
  // commit(); without that it comes again.
  const PictureBatch* next(std::chrono::milliseconds timeout);
  // An update has consumed what next() gave.
  void commit();

  const FeedOptions& options() const { return options_; }
  FeedFigures figures() const;
  // What the batch in turn lacks; empty when it is whole, or all epochs are over.
  std::string waiting_on() const;
  bool finished() const;  // all epochs are committed

  // What is committed. load and begin_at are for a feed that was not used yet; kCorrupt as the
  // ledger's, or for another set.
  DataPlace place() const;
  void begin_at(const DataPlace& place);
  std::vector<std::uint8_t> save() const;
  Result<void> load(const std::vector<std::uint8_t>& bytes);

 private:
  struct Slot {
    PictureBatch out;
    std::vector<std::uint64_t> leases;  // [positions]; 0: not there
    std::int64_t missing = 0, corrupt = 0;
    bool compacted = false;
  };
  Slot& slot_of(const LeaseLedger::Place& place);
  bool has_room(const LeaseLedger::Place& place) const;
  std::int64_t end_locked(const DataActor& actor);
  std::int64_t batch_end(std::int64_t begin) const;
  void commit_front();
  void leave_out_corrupt(Slot& slot) const;

  const FeedOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable whole_;
  LeaseLedger ledger_;
  std::deque<Slot> slots_;                        // in order; the first is the learner's
  std::map<DataActor, std::uint32_t> workers_;    // names in the ledger; 0 is the feed's own
  std::map<std::uint32_t, std::uint32_t> ended_;  // highest incarnation by index
  std::uint32_t next_worker_ = 1;
  std::uint64_t corrupt_ = 0, stale_ = 0, released_ = 0;
};

}  // namespace troupe::learners::data
