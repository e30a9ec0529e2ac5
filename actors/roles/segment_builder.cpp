// Implements the collection of steps into chunks.
#include "actors/roles/segment_builder.hpp"

#include <cassert>
#include <cmath>
#include <cstring>

#include "replay/bytes.hpp"

namespace troupe::actors {
namespace {

void append(std::vector<std::uint8_t>& bytes, const void* data, std::size_t size) {
  const auto* first = static_cast<const std::uint8_t*>(data);
  bytes.insert(bytes.end(), first, first + size);
}

}  // namespace

SegmentBuilder::SegmentBuilder(replay::Signature signature, std::uint32_t worker,
                               std::uint32_t incarnation, std::uint32_t environment,
                               std::int64_t flush_steps)
    : signature_(std::move(signature)), flush_steps_(flush_steps) {
  assert(flush_steps_ >= 1);
  open_.header.worker = worker;
  open_.header.incarnation = incarnation;
  open_.header.environment = environment;
  open_.header.spec_hash = signature_.spec_hash;
  open_.observation.resize(signature_.observation.size());
  open_.step.resize(signature_.step.size());
}

void SegmentBuilder::add(std::span<const float> observation, std::span<const float> action,
                         float reward, std::uint64_t version, std::uint32_t epoch, Time now) {
  if (open_.header.steps == 0) {
    opened_ = now;
    open_.header.episode = episode_;
    open_.header.first_step = next_step_;
    open_.header.parameter_version = version;
    open_.header.learner_epoch = epoch;
  }
  append(open_.observation.front(), observation.data(), observation.size_bytes());
  if (signature_.step.front().dtype == DType::kI32) {
    const auto choice = static_cast<std::int32_t>(std::lround(action.front()));
    append(open_.step.front(), &choice, sizeof choice);
  } else {
    append(open_.step.front(), action.data(), action.size_bytes());
  }
  open_.reward.push_back(reward);
  ++open_.header.steps;
  ++next_step_;
  if (static_cast<std::int64_t>(open_.header.steps) >= flush_steps_) opened_ = Time::min();
}

void SegmentBuilder::end(replay::EpisodeEnd end, std::span<const float> observation) {
  assert(open_.header.steps > 0);
  append(open_.observation.front(), observation.data(), observation.size_bytes());
  open_.header.end = end;
  closed_.push_back(open_);
  reset_open();
  ++episode_;
  next_step_ = 0;
}

void SegmentBuilder::abandon() {
  reset_open();
  ++episode_;
  next_step_ = 0;
}

void SegmentBuilder::reset_open() {
  for (auto& column : open_.observation) column.clear();
  for (auto& column : open_.step) column.clear();
  open_.reward.clear();
  open_.header.steps = 0;
  open_.header.end = replay::EpisodeEnd::kContinues;
}

std::optional<replay::Chunk> SegmentBuilder::take(Time now, std::chrono::milliseconds max_age) {
  if (!closed_.empty()) {
    replay::Chunk chunk = std::move(closed_.front());
    closed_.erase(closed_.begin());
    return chunk;
  }
  if (open_.header.steps == 0) return std::nullopt;
  // opened_ == min() marks a full chunk; the subtraction would overflow.
  if (opened_ != Time::min() && now - opened_ < max_age) return std::nullopt;
  replay::Chunk chunk = open_;
  reset_open();
  return chunk;
}

void SegmentBuilder::save(std::vector<std::uint8_t>& out) const {
  assert(closed_.empty());
  replay::ByteWriter writer(out);
  writer.put(episode_);
  writer.put(next_step_);
  writer.put(open_.header.steps);
  writer.put(open_.header.parameter_version);
  writer.put(open_.header.learner_epoch);
  for (const auto& column : open_.observation) writer.array(std::span(column));
  for (const auto& column : open_.step) writer.array(std::span(column));
  writer.array(std::span(open_.reward));
}

Result<void> SegmentBuilder::load(std::span<const std::uint8_t> bytes) {
  replay::ByteReader reader(bytes);
  const auto episode = reader.take<std::uint64_t>();
  const auto next_step = reader.take<std::uint32_t>();
  replay::Chunk open = open_;
  open.header.steps = reader.take<std::uint32_t>();
  open.header.parameter_version = reader.take<std::uint64_t>();
  open.header.learner_epoch = reader.take<std::uint32_t>();
  bool fits = next_step >= open.header.steps;
  for (std::size_t i = 0; i < open.observation.size(); ++i)
    fits = reader.array(open.observation[i]) && fits &&
           open.observation[i].size() == open.header.steps * signature_.observation[i].bytes();
  for (std::size_t i = 0; i < open.step.size(); ++i)
    fits = reader.array(open.step[i]) && fits &&
           open.step[i].size() == open.header.steps * signature_.step[i].bytes();
  fits = reader.array(open.reward) && fits && open.reward.size() == open.header.steps;
  if (!fits || !reader.finished())
    return fail(ErrorCode::kCorrupt, "the saved open segment does not fit the environment's spec");
  open.header.episode = episode;
  open.header.first_step = next_step - open.header.steps;
  open_ = std::move(open);
  episode_ = episode;
  next_step_ = next_step;
  opened_ = Time{};  // old by any running clock, of no age on a fixed schedule's
  return {};
}

}  // namespace troupe::actors
