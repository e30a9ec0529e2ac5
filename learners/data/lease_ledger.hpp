// Which positions of which epoch have been handed out, and which a committed update has consumed:
// every position of an epoch is consumed exactly once, however workers come, go and die. Pure: no
// clock, no lock; one owner.
//
//   free ──lease──▶ leased to a worker ──commit──▶ committed
//     ▲                    │
//     └──────release───────┘   (the worker died, or the update that had it was lost)
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"
#include "replay/bytes.hpp"

namespace troupe::learners::data {

// Positions begin <= p < end of one epoch.
struct Lease {
  std::uint64_t id = 0;
  std::uint64_t epoch = 0;
  std::int64_t begin = 0, end = 0;
  bool operator==(const Lease&) const = default;
};

// One consumed position and the lease it came by.
struct Consumed {
  std::uint64_t lease = 0;
  std::int64_t position = 0;
};

class LeaseLedger {
 public:
  // `size` positions an epoch, >= 1; 0 `epochs`: without end. A new epoch is begun before the last
  // one is committed: whoever wants to see one end waits for committed(epoch) == size.
  LeaseLedger(std::int64_t size, std::uint64_t epochs);

  // At most n (>= 1) positions, what was released first. Nothing when all are leased or committed.
  std::optional<Lease> lease(std::uint32_t worker, std::int64_t n);
  // Where the next lease will begin.
  struct Place {
    std::uint64_t epoch = 0;
    std::int64_t position = 0;
    bool operator==(const Place&) const = default;
  };
  std::optional<Place> next() const;
  // A lease that this worker has.
  std::optional<Lease> find(std::uint64_t lease, std::uint32_t worker) const;
  // From now on the lease is another worker's: one that holds what was delivered. False for one
  // that is no more.
  bool hand_over(std::uint64_t lease, std::uint32_t worker);
  // What an update consumed that is now certain. Counts and ignores positions that are not in the
  // lease they name, or were committed by it before: a released lease is no more, so what a worker
  // delivers after it was given up changes nothing. Returns how many were new.
  std::int64_t commit(std::span<const Consumed> consumed);
  // Whether a position that was delivered still counts; what does not must not be trained on.
  bool current(const Consumed& consumed) const;
  // Frees what the worker has and was not committed. Returns how many positions.
  std::int64_t release(std::uint32_t worker);
  // The same of everyone: nothing of what was delivered and not committed counts any more.
  std::int64_t release_all();

  std::int64_t size() const { return size_; }
  // Of an epoch: size() once it is over, 0 before it begins.
  std::int64_t committed(std::uint64_t epoch) const;
  std::int64_t leased() const;
  // The first epoch that is not committed in full.
  std::uint64_t epoch() const { return first_open_; }
  bool finished() const { return epochs_ > 0 && first_open_ >= epochs_; }
  std::uint64_t ignored() const { return ignored_; }

  // As if everything before `place` were committed, and nothing else leased.
  void begin_at(const Place& place);
  // What is committed. load frees everything else; kCorrupt, unchanged, when the bytes are not of a
  // ledger of this size.
  void save(replay::ByteWriter& out) const;
  Result<void> load(replay::ByteReader& in);

 private:
  struct Open {
    Lease lease;
    std::uint32_t worker = 0;
    std::vector<bool> done;  // [end - begin]
    std::int64_t left = 0;
  };
  struct Epoch {
    std::map<std::int64_t, std::int64_t> ranges;  // committed, begin to end, never touching
    std::int64_t count = 0;
    std::int64_t next = 0;  // positions from here on were never leased
  };

  void add_range(Epoch& epoch, std::int64_t begin, std::int64_t end);
  void settle(const Open& open);  // its committed positions into the ranges, the others freed
  void close_epochs();
  Lease grant(std::uint32_t worker, std::uint64_t epoch, std::int64_t begin, std::int64_t end);

  std::int64_t size_;
  std::uint64_t epochs_;
  std::uint64_t first_open_ = 0;
  std::map<std::uint64_t, Epoch> open_epochs_;
  std::map<std::uint64_t, Open> leases_;  // by id
  std::deque<Lease> freed_;               // ids without meaning
  std::uint64_t next_id_ = 1, ignored_ = 0;
};

}  // namespace troupe::learners::data
