// One replay shard's side of the data channels: takes chunks into the table and acknowledges them;
// when learners live elsewhere, it also tells them what it has, inserts as far as they allow, sends
// batches on request and takes priorities. Belongs to one thread; the table may be shared.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "actors/roles/nap.hpp"
#include "actors/roles/shard_state.hpp"
#include "actors/roles/step_mark.hpp"
#include "actors/runtime/channel.hpp"
#include "replay/table.hpp"

namespace troupe::actors {

class ShardServer {
 public:
  // `sample_endpoint` empty: batches are drawn in this process, by others.
  static Result<std::unique_ptr<ShardServer>> open(std::shared_ptr<replay::Table> table,
                                                   const std::string& data_endpoint,
                                                   const std::string& sample_endpoint);

  std::string data_endpoint() const { return data_->endpoint(); }
  std::string sample_endpoint() const { return samples_ ? samples_->endpoint() : ""; }

  // Handles what came in and what the limiter lets pass now; waits at most `timeout` for something
  // new, and a millisecond at most if it has samplers.
  void serve(std::chrono::milliseconds timeout);

  static constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  // Chunks wait once the table has inserted so many steps: the last one taken may go beyond. Any
  // thread.
  void limit(std::uint64_t inserted_steps) { limit_ = inserted_steps; }
  std::uint64_t limit() const { return limit_; }
  // How long no chunk has come, while none waits to be inserted; 0 while one does. Any thread.
  std::chrono::milliseconds quiet_for() const;
  // From now on `mark` says what was inserted before any of it is acknowledged. Before serve().
  void keep_mark(std::unique_ptr<StepMark> mark) { mark_ = std::move(mark); }

  replay::Table& table() { return *table_; }
  // Messages that could not be read; any thread may ask.
  std::uint64_t corrupt() const { return corrupt_; }

 private:
  struct Pending {
    std::string peer;
    replay::ChunkPtr chunk;
  };
  struct Wanted {
    std::string peer;
    std::uint64_t batch_id = 0, items = 0;
  };
  // One that has spoken: a learner, or the lead of several, whose successor under the same name
  // takes its place.
  struct Sampler {
    std::string peer;         // with its incarnation
    Grant grant;              // the newest
    std::uint64_t drawn = 0;  // items
    std::optional<ShardState> told;
    std::chrono::steady_clock::time_point told_at{};
  };

  ShardServer(std::shared_ptr<replay::Table> table, std::unique_ptr<ChannelServer> data,
              std::unique_ptr<ChannelServer> samples);
  void serve_samplers();
  void take_chunk(const ChannelServer::Received& received);
  void insert_pending();
  void acknowledge(const std::string& peer, const replay::ChunkHeader& header);
  void refuse(const std::string& peer, const std::array<std::uint64_t, 3>& key,
              const std::string& why);
  void take_from_sampler(const ChannelServer::Received& received);
  void take_request(const std::string& peer, std::uint64_t batch_id, std::uint64_t items);
  void take_grant(const std::string& peer, const Grant& grant);
  void answer_requests();
  void tell_samplers();

  std::shared_ptr<replay::Table> table_;
  std::unique_ptr<ChannelServer> data_, samples_;
  std::deque<Pending> pending_;
  std::deque<Wanted> wanted_;
  replay::Batch batch_;
  std::vector<double> probabilities_;
  Nap nap_;                                  // with samplers
  std::map<std::string, Sampler> samplers_;  // by name without incarnation
  std::uint32_t lead_ = 0;                   // the highest of all grants
  std::uint64_t sampled_ = 0;                // items, in this life
  const std::uint64_t restored_;             // items inserted when this life began
  std::uint64_t inserted_;                   // steps of the table, restored ones included
  std::unique_ptr<StepMark> mark_;           // of inserted_; null: none
  std::atomic<std::chrono::steady_clock::rep> quiet_since_;  // 0: not quiet
  std::atomic<std::uint64_t> corrupt_{0};
  std::atomic<std::uint64_t> limit_{kNoLimit};
};

}  // namespace troupe::actors
