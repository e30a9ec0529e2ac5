// Keeps samples per insert over all shards of a run together, on the sampler's side: it knows what
// every shard has inserted (ShardState) and what it has sampled itself, decides when a batch may be
// drawn, and gives the shards leave to insert. Pure: no clock, no lock, no messages. One owner.
//
// The rule is RateLimiter's (replay/rate_limiter.hpp), on the counters of the whole run:
//   cursor = SPI x inserts - samples,   SPI x min_size - error_buffer <= cursor
//                                                               <= SPI x min_size + error_buffer
// What may still be inserted, the room, is dealt out as grants: absolute counts per shard. A shard
// where a chunk waits gets what the chunk needs, the one that waited longest first, and unused
// leave of others is taken back for it (a lower grant counts once the shard has said that it obeys
// it); what is left goes to the shards in proportion to what they inserted lately. So a shard
// without environment actors hoards nothing, and while the band holds a chunk and a batch
// (limiter_check.hpp) one side can always move.
//
// Shards come and go: a new life of a shard (a higher epoch) begins with what it restored, and what
// its predecessor had inserted beyond that counts as inserted and lost, because samples were owed
// and given for it. Of several learners that train in step one keeps the ratio for all, with global
// batches. Of learners that draw batches each for itself all count what any of them draws, as the
// shards tell (`shared`), and one, the lead, gives leave; N of them may pass the lower end of the
// band by what N - 1 draw at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "actors/roles/shard_state.hpp"
#include "replay/rate_limiter.hpp"

namespace troupe::actors {

class GlobalLimiter {
 public:
  // `allowed` of shards while there is no ratio.
  static constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;

  // Of the kind kRatio: min_size items held by all shards together before the first sample, and
  // samples_per_insert and error_buffer of this sampler.
  explicit GlobalLimiter(const replay::LimiterOptions& options, bool shared = false)
      : options_(options), shared_(shared) {}

  // News of a shard; older epochs are ignored. A shard that was never heard of is added.
  void report(std::size_t shard, const ShardState& state);
  // It does not serve now: nothing can be drawn there, and its grants are void. What it inserted
  // counts.
  void gone(std::size_t shard);

  bool can_sample(std::uint64_t n) const;
  // Why n samples would wait, with the numbers; empty when they would not.
  std::string sample_block_reason(std::uint64_t n) const;
  void commit_sample(std::uint64_t n) { samples_ += n; }

  // Grants that are to go out now; they count as sent.
  std::vector<Grant> grants();
  // Of each shard that has not said that it obeys its newest grant: that grant, to be sent again
  // when messages may have been lost.
  std::vector<Grant> unacknowledged() const;
  // It gives leave from now on, with grants of this lead: shards hold none of its own.
  void begin_lead(std::uint32_t lead);

  // Of shards that serve; others are zero in it.
  std::vector<ShardState> states() const;
  double cursor() const;
  // Items that may be inserted beyond those that were reported.
  std::uint64_t room() const;
  // Reported by all shards ever, lost ones included, prefilled ones not.
  std::uint64_t inserted() const;
  std::uint64_t held() const;
  std::uint64_t lost() const { return lost_; }
  // Its own, and of others what shards have told.
  std::uint64_t samples() const { return samples_ + others_; }
  // Samples per insert really given since min_size; 0 before.
  double measured_spi() const;
  const replay::LimiterOptions& options() const { return options_; }

  // As JSON, for a checkpoint; `samples` are its own whose updates are in it, because batches that
  // wait die with the sampler.
  std::string save(std::uint64_t samples) const;
  // Into a new limiter, before any report. With other options than the saved ones the cursor is
  // moved so that nothing waits for what was owed under the old ones: it stays as far from SPI x
  // min_size as it was, within the new error buffer. kCorrupt for what save did not write.
  Result<void> load(const std::string& json);
  // For a sampler that begins with `samples` drawn and no saved state.
  void begin_at(std::uint64_t samples) { samples_ = samples; }

 private:
  struct Shard {
    ShardState state;
    bool known = false, live = false;
    std::deque<Grant> under_way;  // newer than the one in force, oldest first
    std::uint64_t served = 0;     // when a waiting chunk of its was last let in
    double activity = 0;          // items inserted lately
    std::uint64_t others = 0;     // that others drew there in its present life

    std::uint64_t latest() const {
      return under_way.empty() ? state.allowed : under_way.back().allowed;
    }
    std::uint64_t most() const;       // that it may insert up to, whatever it has heard
    std::uint64_t committed() const;  // leave that it may still use
  };

  std::uint64_t owed_inserts() const;
  std::uint64_t prefilled() const;
  double cursor_at(std::uint64_t owed) const;
  std::vector<std::size_t> waiting() const;  // longest first
  void allow(std::size_t shard, std::uint64_t items, std::vector<Grant>& out);
  void take_back(std::uint64_t items, std::size_t for_shard, std::vector<Grant>& out);
  void spread(std::uint64_t free, std::vector<Grant>& out);

  void count_others(Shard& shard, const ShardState& state, bool new_life);

  const replay::LimiterOptions options_;
  const bool shared_;
  std::vector<Shard> shards_;
  std::uint64_t samples_ = 0, others_ = 0, lost_ = 0;
  std::uint32_t lead_ = 0;
  double shift_ = 0;  // of the cursor, from a load with changed options
  std::uint64_t turn_ = 0, serial_ = 0;
};

}  // namespace troupe::actors
