// One table of the service with the samples that wait at it until their deadline, and the
// checkpoint that is being written. Chunks wait in insert_queue.hpp. Belongs to the service's
// thread.
#pragma once

#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/service/protocol.hpp"
#include "actors/service/shared_slots.hpp"
#include "actors/service/table_request.hpp"
#include "replay/table.hpp"

namespace troupe::actors {

// An answer to a request that counted against its peer's credit.
struct Answer {
  Request to;
  ChannelMessage message;
};
using Answers = std::vector<Answer>;

class HostedTable {
 public:
  using Clock = std::chrono::steady_clock;

  HostedTable(std::string name, std::uint32_t id, std::unique_ptr<replay::Table> table);

  const std::string& name() const { return name_; }
  std::uint32_t id() const { return id_; }
  replay::Table& table() { return *table_; }
  const replay::Table& table() const { return *table_; }

  // Before a writer's chunk goes in: kUnavailable when the table has seen too many writers.
  Result<void> meet_writer(std::uint32_t worker);
  // A sample that is being asked for. With `memory` the batch goes into that slot of it, and the
  // reply is only its head.
  struct Sample {
    Request from;
    std::uint32_t items = 0;
    Clock::time_point deadline;
    std::shared_ptr<SharedSlots> memory;
    std::uint32_t slot = 0;
  };
  // kInvalidArgument when the batch would exceed `max_reply_bytes`, or the slot.
  Result<void> add_sample(Sample sample, std::uint64_t max_reply_bytes);
  // Starts writing a checkpoint on a thread of its own. kUnavailable while one is being written.
  Result<void> add_checkpoint(const Request& request, const std::filesystem::path& path);
  void end_writer(std::uint32_t worker);

  // Answers the samples that can be answered now, or whose time is up; whether there was one. One
  // that must wait lets later ones pass.
  bool serve_samples(Clock::time_point now, Answers& answers);
  // Answers whoever waits for the checkpoint, once it is written.
  void serve_checkpoint(Answers& answers);
  // Forgets the samples that a peer waits for; returns how many those were.
  std::size_t forget(const std::string& peer);

  // When there is something to answer without a new message; nullopt: never.
  std::optional<Clock::time_point> next_deadline(Clock::time_point now) const;
  // `waiting` chunks wait to go in, the first of them because of `blocked`.
  nlohmann::json info(std::size_t waiting, const std::string& blocked) const;

 private:
  struct Checkpoint {
    Request from;
    std::filesystem::path path;
    std::future<Result<std::uint64_t>> written;
  };

  // nullopt: it must wait.
  std::optional<ChannelMessage> try_sample(const Sample& sample, Clock::time_point now);
  std::shared_ptr<Bytes> buffer(std::size_t bytes);

  std::string name_;
  std::uint32_t id_;
  std::unique_ptr<replay::Table> table_;
  std::deque<Sample> samples_;
  std::optional<Checkpoint> checkpoint_;
  std::set<std::uint32_t> writers_;
  // Payloads that were sent; one is filled again once nobody else holds it.
  std::vector<std::shared_ptr<Bytes>> buffers_;
};

}  // namespace troupe::actors
