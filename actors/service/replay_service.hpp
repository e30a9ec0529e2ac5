// The replay service: named tables behind one channel. Any client may declare a table, insert into
// it, sample from it and ask about it; what one client sends never changes how another is served.
// Belongs to one thread, which calls serve() again and again; other threads may only read counters.
//
// Memory beyond the tables is bounded by memory_bound(): each peer has at most `credit` inserts
// and as many samples and checkpoints under way, the channel queues twice as many and 8 more in
// each direction, and a message has a largest size. Inserts count apart, so that one that the
// limiter holds back never keeps its own client from the samples that would let it pass. A peer
// that neither asks nor waits for `forget_after` is forgotten.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/service/hosted_table.hpp"
#include "actors/service/insert_queue.hpp"
#include "actors/service/protocol.hpp"
#include "actors/service/table_request.hpp"

namespace troupe::actors {

struct ServiceOptions {
  std::string endpoint = "tcp://127.0.0.1:*";
  bool insecure = false;              // may listen on more than loopback; nothing is encrypted
  std::int64_t max_message_mib = 64;  // of one request or reply
  std::int64_t credit = 4;            // requests under way per client
  std::int64_t max_clients = 16;      // that have asked within forget_after
  std::int64_t max_table_mib = 0;     // of all tables when full; 0: three quarters of the RAM
  std::chrono::seconds forget_after{300};
  std::filesystem::path checkpoint_directory;  // empty: no checkpoints
  // Where all tables keep their payloads, if anywhere but in memory.
  std::string disk_folder;    // empty: in memory
  std::int64_t disk_mib = 0;  // set aside there at the start

  std::uint64_t max_message_bytes() const {
    return static_cast<std::uint64_t>(max_message_mib) << 20;
  }
};

class ReplayService {
 public:
  using Clock = std::chrono::steady_clock;

  // kInvalidArgument for options out of range and for an endpoint that is not loopback without
  // `insecure`; kUnavailable when the address is in use; kIo when the disk has no room.
  static Result<std::unique_ptr<ReplayService>> open(const ServiceOptions& options);

  // Makes a table, restored from its checkpoint when the directory holds one. Notes say what was
  // restored and which options differ from the saved ones.
  Result<std::vector<std::string>> add_table(const TableRequest& request);

  // Handles what came in and what can be answered now; waits at most `timeout` for something new.
  void serve(std::chrono::milliseconds timeout);
  // Writes every table's checkpoint; nothing when there is no directory for them. Errors name the
  // first table that could not be written; the others are.
  Result<void> write_checkpoints();

  std::string endpoint() const { return channel_->endpoint(); }
  std::uint64_t memory_bound() const;
  nlohmann::json info() const;

 private:
  struct Peer {
    Clock::time_point last_seen;
    std::int64_t inserts = 0, others = 0;  // under way
    std::shared_ptr<SharedSlots> memory;   // nullptr: batches travel in messages
    std::int64_t& under_way(ServiceKind kind) {
      return kind == ServiceKind::kInsert ? inserts : others;
    }
  };
  struct Counters {
    std::uint64_t requests = 0, malformed = 0, refused = 0, over_credit = 0, lost_replies = 0;
    std::uint64_t forgotten_peers = 0;
  };
  using Body = std::span<const std::uint8_t>;
  // nullopt: answered already, or later.
  using Outcome = std::optional<ServiceFailure>;

  ReplayService(ServiceOptions options, std::unique_ptr<ChannelServer> channel,
                std::shared_ptr<replay::ChunkStorage> storage);
  void serve_tables(Clock::time_point now);
  bool serve_queues(Answers& answers);
  void take(const ChannelServer::Received& received, Clock::time_point now);
  Outcome admit(const Request& request, Clock::time_point now);
  Outcome handle(const Request& request, Body body, Clock::time_point now);
  Outcome hello(const Request& request);
  Outcome open_table(const Request& request, Body body);
  Outcome insert(const Request& request, Body body);
  Outcome sample(const Request& request, Body body, Clock::time_point now);
  Outcome priorities(const Request& request, Body body);
  Outcome tell(const Request& request, Body body);
  Outcome checkpoint(const Request& request, Body body);
  Outcome end_writer(const Request& request, Body body);
  Outcome share_memory(const Request& request, Body body);
  HostedTable* find(std::uint32_t id);
  // The queue of chunks for exactly these tables.
  Result<InsertQueue*> queue_of(const std::vector<HostedTable*>& tables);
  nlohmann::json table_info(const HostedTable& table) const;
  // Ids of this start: those of another one name nothing, never a different table.
  std::uint32_t first_id() const { return static_cast<std::uint32_t>(session_ >> 32) & 0x7fffff00; }
  Result<void> check_room(const TableRequest& request) const;
  Result<std::vector<std::string>> restore(replay::Table& table,
                                           const std::filesystem::path& path) const;
  nlohmann::json table_json(const HostedTable& table) const;
  std::filesystem::path checkpoint_path(const std::string& table) const;
  void reply(const std::string& peer, ChannelMessage message);
  void send_answers(Answers& answers);
  void forget_silent(Clock::time_point now);
  std::chrono::milliseconds patience(std::chrono::milliseconds timeout) const;

  const ServiceOptions options_;
  const std::uint64_t session_;  // another number after every start
  std::unique_ptr<ChannelServer> channel_;
  std::shared_ptr<replay::ChunkStorage> storage_;     // of all tables
  std::vector<std::unique_ptr<HostedTable>> tables_;  // [id - first_id()]
  // One for each set of tables for which chunks wait; at most as many as may be under way.
  std::deque<InsertQueue> queues_;
  std::map<std::string, Peer> peers_;
  Clock::time_point next_sweep_{};
  Counters counters_;
};

}  // namespace troupe::actors
