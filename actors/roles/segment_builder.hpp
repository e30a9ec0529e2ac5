// Collects one environment's steps into chunks: closed when full, old or at the end of the episode.
// Pure: time is a parameter. One owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "envs/spec/result.hpp"
#include "replay/signature.hpp"

namespace troupe::actors {

class SegmentBuilder {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `flush_steps` >= 1: a chunk is closed after so many steps.
  SegmentBuilder(replay::Signature signature, std::uint32_t worker, std::uint32_t incarnation,
                 std::uint32_t environment, std::int64_t flush_steps);

  // One step: observation it was taken in [observation_size], action [elements], reward. `version`
  // and `epoch` are those of the policy that acted.
  void add(std::span<const float> observation, std::span<const float> action, float reward,
           std::uint64_t version, std::uint32_t epoch, Time now);
  // The episode is over after the last step added; `observation` is its final one.
  void end(replay::EpisodeEnd end, std::span<const float> observation);
  // The open episode cannot be trusted: its unsent steps are dropped, the next step opens a new
  // episode.
  void abandon();

  // A chunk that is to be sent now, without its sequence number: full, ended, or with `max_age`
  // passed since its first step. Call until nullopt.
  std::optional<replay::Chunk> take(Time now, std::chrono::milliseconds max_age);

  std::uint64_t episode() const { return episode_; }
  std::uint32_t episode_step() const { return next_step_; }
  std::size_t open_steps() const { return open_.header.steps; }

  // Open steps, episode and step numbers as bytes; the incarnation stays this object's own.
  void save(std::vector<std::uint8_t>& out) const;
  Result<void> load(std::span<const std::uint8_t> bytes);

 private:
  void reset_open();

  replay::Signature signature_;
  std::int64_t flush_steps_;
  replay::Chunk open_;
  Time opened_{};
  std::vector<replay::Chunk> closed_;
  std::uint64_t episode_ = 0;
  std::uint32_t next_step_ = 0;
};

}  // namespace troupe::actors
