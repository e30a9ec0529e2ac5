// What waits at a table, and when it is answered.
#include "actors/service/hosted_table.hpp"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <utility>

#include "replay/checkpoint.hpp"

namespace troupe::actors {
namespace {

// Each writer's marks cost the table some 200 bytes for ever, and its open window more.
constexpr std::size_t kMaxWriters = 65536;
// Sent payloads kept for the next batches.
constexpr std::size_t kMaxBuffers = 4;
// How often a checkpoint under way is looked at.
constexpr std::chrono::milliseconds kCheckpointPoll{5};

}  // namespace

HostedTable::HostedTable(std::string name, std::uint32_t id, std::unique_ptr<replay::Table> table)
    : name_(std::move(name)), id_(id), table_(std::move(table)) {}

Result<void> HostedTable::meet_writer(std::uint32_t worker) {
  if (writers_.contains(worker)) return {};
  if (writers_.size() >= kMaxWriters)
    return fail(ErrorCode::kUnavailable, "table '" + name_ + "' has seen " +
                                             std::to_string(kMaxWriters) +
                                             " writers; end those that are done");
  writers_.insert(worker);
  return {};
}

Result<void> HostedTable::add_sample(Sample sample, std::uint64_t max_reply_bytes) {
  if (sample.items == 0)
    return fail(ErrorCode::kInvalidArgument, "a batch of 0 items was asked for");
  if (sample.memory) {
    max_reply_bytes = sample.memory->slot(sample.slot).size();
    if (max_reply_bytes == 0)
      return fail(ErrorCode::kInvalidArgument,
                  "the shared memory has no slot " + std::to_string(sample.slot));
  }
  std::uint64_t row = sizeof(replay::ItemKey) + sizeof(std::uint64_t);
  for (const Column& column : table_->batch_columns()) row += column.bytes();
  // Division first: a product of untrusted numbers might overflow.
  if (sample.items > max_reply_bytes / row ||
      batch_layout(table_->batch_columns(), sample.items).bytes > max_reply_bytes)
    return fail(ErrorCode::kInvalidArgument,
                "a batch of " + std::to_string(sample.items) + " items of '" + name_ + "' with " +
                    std::to_string(row) + " bytes each exceeds the largest message or slot of " +
                    std::to_string(max_reply_bytes) + " bytes");
  samples_.push_back(std::move(sample));
  return {};
}

Result<void> HostedTable::add_checkpoint(const Request& request,
                                         const std::filesystem::path& path) {
  if (checkpoint_)
    return fail(ErrorCode::kUnavailable, "a checkpoint of '" + name_ + "' is being written");
  auto write = [snapshot = table_->snapshot(), path] {
    return replay::write_checkpoint(snapshot, path);
  };
  checkpoint_ = Checkpoint{request, path, std::async(std::launch::async, std::move(write))};
  return {};
}

void HostedTable::end_writer(std::uint32_t worker) {
  table_->abandon(worker);
  writers_.erase(worker);
}

bool HostedTable::serve_samples(Clock::time_point now, Answers& answers) {
  bool any = false;
  for (auto sample = samples_.begin(); sample != samples_.end();) {
    auto message = try_sample(*sample, now);
    if (!message) {
      ++sample;
      continue;
    }
    answers.push_back({sample->from, *std::move(message)});
    sample = samples_.erase(sample);
    any = true;
  }
  return any;
}

std::optional<ChannelMessage> HostedTable::try_sample(const Sample& sample, Clock::time_point now) {
  const auto items = table_->try_sample(sample.items);
  if (!items) {
    if (now < sample.deadline) return std::nullopt;
    return error_reply(sample.from.id, {ServiceErrorCode::kTimeout,
                                        "no " + std::to_string(sample.items) + " samples of '" +
                                            name_ + "' in time: " + items.error().message});
  }
  const BatchLayout layout = batch_layout(table_->batch_columns(), sample.items);
  std::shared_ptr<Bytes> payload;
  std::span<std::uint8_t> target;
  if (sample.memory) {
    target = sample.memory->slot(sample.slot);
  } else {
    payload = buffer(layout.bytes);
    target = *payload;
  }
  replay::Batch batch(table_->batch_columns(), sample.items, target.subspan(kBatchHead));
  if (auto good = table_->gather(*items, batch); !good)
    return error_reply(sample.from.id, {service_code_of(good.error().code), good.error().message});
  finish_batch(sample.from, layout, batch, target);
  if (sample.memory) return slot_reply(sample.from, layout, sample.items);
  return ChannelMessage{
      static_cast<std::uint8_t>(static_cast<std::uint8_t>(ServiceKind::kSample) | kReplyBit),
      std::move(payload)};
}

// A vector of 32 MB costs more to zero and to fault in than to gather into.
std::shared_ptr<Bytes> HostedTable::buffer(std::size_t bytes) {
  for (const auto& held : buffers_)
    if (held.use_count() == 1 && held->size() == bytes) {
      std::atomic_thread_fence(std::memory_order_acquire);  // the sender's last read came before
      return held;
    }
  std::erase_if(buffers_, [&](const auto& held) { return held->size() != bytes; });
  auto fresh = std::make_shared<Bytes>(bytes);
  if (buffers_.size() < kMaxBuffers) buffers_.push_back(fresh);
  return fresh;
}

void HostedTable::serve_checkpoint(Answers& answers) {
  if (!checkpoint_ ||
      checkpoint_->written.wait_for(std::chrono::seconds{0}) != std::future_status::ready)
    return;
  const Result<std::uint64_t> bytes = checkpoint_->written.get();
  const Request& from = checkpoint_->from;
  answers.push_back(
      {from, bytes ? json_reply(from, {{"path", checkpoint_->path.string()}, {"bytes", *bytes}})
                   : error_reply(from.id, {ServiceErrorCode::kIo, bytes.error().message})});
  checkpoint_.reset();
}

std::size_t HostedTable::forget(const std::string& peer) {
  return std::erase_if(samples_, [&](const Sample& waiting) { return waiting.from.peer == peer; });
}

std::optional<HostedTable::Clock::time_point> HostedTable::next_deadline(
    Clock::time_point now) const {
  std::optional<Clock::time_point> next;
  for (const Sample& sample : samples_)
    if (!next || sample.deadline < *next) next = sample.deadline;
  if (checkpoint_ && (!next || now + kCheckpointPoll < *next)) next = now + kCheckpointPoll;
  return next;
}

nlohmann::json HostedTable::info(std::size_t waiting, const std::string& blocked) const {
  const replay::TableStatistics s = table_->statistics();
  return {{"name", name_},
          {"id", id_},
          {"options", options_json(table_->options())},
          {"inserted_steps", s.inserted_steps},
          {"held_steps", s.held_steps},
          {"removed_steps", s.removed_steps},
          {"lost_steps", s.lost_steps},
          {"inserted_items", s.inserted_items},
          {"held_items", s.held_items},
          {"removed_items", s.removed_items},
          {"pending_steps", s.pending_steps},
          {"dropped_steps", s.dropped_steps},
          {"sampled_items", s.sampled_items},
          {"chunks", s.chunks},
          {"bytes_held", s.bytes_held},
          {"raw_bytes", s.raw_bytes},
          {"memory_bytes", s.memory_bytes},
          {"chunk_memory_bytes", s.chunk_memory_bytes},
          {"disk_bytes", s.disk_bytes},
          {"duplicate_chunks", s.duplicate_chunks},
          {"stale_chunks", s.stale_chunks},
          {"not_finite_chunks", s.not_finite_chunks},
          {"malformed_chunks", s.malformed_chunks},
          {"priority_updates", s.priority_updates},
          {"stale_priorities", s.stale_priorities},
          {"insert_blocked_ms", s.insert_blocked_ms},
          {"sample_blocked_ms", s.sample_blocked_ms},
          {"samples_per_insert", s.samples_per_insert},
          {"limiter", s.limiter},
          {"insert_block_reason", waiting == 0 ? table_->insert_block_reason() : blocked},
          {"sample_block_reason", table_->sample_block_reason(1)},
          {"waiting_inserts", waiting},
          {"waiting_samples", samples_.size()}};
}

}  // namespace troupe::actors
