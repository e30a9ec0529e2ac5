// Batches from shards of this process.
#include <algorithm>

#include "actors/roles/batch_source.hpp"
#include "actors/roles/draw_shares.hpp"
#include "actors/runtime/thread_settings.hpp"
#include "replay/gather.hpp"
#include "replay/joined_draw.hpp"

namespace troupe::actors {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{2};    // between two looks at the shards while the learner is busy
constexpr milliseconds kInsert{1};  // the same while a batch waits for inserts

class LocalSource final : public BatchSource {
 public:
  LocalSource(std::vector<std::shared_ptr<replay::Table>> tables, const SourceOptions& options)
      : BatchSource(tables.front()->batch_columns(), options),
        tables_(std::move(tables)),
        states_(tables_.size()),
        random_(options.random) {
    for (const auto& table : tables_) restored_.push_back(table->statistics().inserted_items);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }

  void update_priorities(std::span<const replay::ItemKey> keys,
                         std::span<const float> values) override {
    std::uint32_t shards = 0;
    for (const auto& table : tables_) shards = std::max(shards, table->options().shard + 1);
    const std::vector<Priorities> parts = by_shard(keys, values, shards);
    std::size_t handed = 0;
    for (const auto& table : tables_) {
      const Priorities& part = parts[table->options().shard];
      if (part.keys.empty()) continue;
      (void)table->update_priorities(part.keys, part.values);  // the table counts late ones
      handed += part.keys.size();
    }
    count_priorities(handed, keys.size() - handed);
  }

 private:
  void run(const std::stop_token& stop) {
    name_thread("prefetch");
    while (!stop.stop_requested()) {
      look();
      replay::Batch* batch = take_empty(stop, kLook);
      if (batch == nullptr) continue;
      if (!fill(*batch, stop)) return;
      give_filled(batch);
    }
  }

  // What the shards have, and their leave to insert; an answer comes at once.
  void look() {
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const ShardState before = states_[i];
      states_[i] = state_of(*tables_[i], restored_[i]);
      states_[i].serial = before.serial;
      states_[i].allowed = before.allowed;
    }
    with_limiter([&](GlobalLimiter& limiter) {
      for (std::size_t i = 0; i < tables_.size(); ++i) limiter.report(i, states_[i]);
      for (const Grant& grant : limiter.grants()) {
        tables_[grant.shard]->allow_inserts(grant.allowed);
        states_[grant.shard].serial = grant.serial;
        states_[grant.shard].allowed = grant.allowed;
        limiter.report(grant.shard, states_[grant.shard]);
      }
    });
  }

  bool fill(replay::Batch& batch, const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      look();
      const std::string reason = with_limiter(
          [&](const GlobalLimiter& limiter) { return limiter.sample_block_reason(counted_); });
      if (!reason.empty()) {
        set_reason(reason);
        tables_.front()->wait_for_inserts(states_.front().inserted, kInsert);
        continue;
      }
      if (!draw(batch)) continue;
      with_limiter([&](GlobalLimiter& limiter) { limiter.commit_sample(counted_); });
      return true;
    }
    return false;
  }

  bool draw(replay::Batch& batch) {
    const std::vector<double> shares = draw_shares(states_);
    const std::vector<std::size_t> counts = draw_counts(items_, shares, random_);
    replay::JoinedDraw drawn;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) {
        drawn.bound(states_[i].min_probability * shares[i]);
        continue;
      }
      auto part = tables_[i]->try_sample(counts[i]);
      if (!part) return wait(part.error().message);  // closed
      drawn.add(std::move(*part), shares[i]);
    }
    if (auto gathered = replay::gather(drawn.items(), tables_.front()->signature(), batch);
        !gathered)
      return wait(gathered.error().message);
    drawn.name_keys(batch.keys);
    return true;
  }

  bool wait(const std::string& reason) {
    set_reason(reason);
    std::this_thread::sleep_for(kInsert);
    return false;
  }

  const std::vector<std::shared_ptr<replay::Table>> tables_;
  std::vector<std::uint64_t> restored_;  // inserted items when the source began
  std::vector<ShardState> states_;
  Random random_;
  std::jthread thread_;  // last: stopped and joined before the rest goes
};

}  // namespace

std::unique_ptr<BatchSource> make_local_source(std::vector<std::shared_ptr<replay::Table>> tables,
                                               const SourceOptions& options) {
  return std::make_unique<LocalSource>(std::move(tables), options);
}

}  // namespace troupe::actors
