// The saved state of a VectorEnv: magic, version, spec hash, count, counters; then for each
// environment its episode counters, current observation, and the environment's own bytes with their
// length.
#include <utility>

#include "envs/state_bytes.hpp"
#include "envs/vector_env.hpp"

namespace troupe::envs {
namespace {

constexpr std::uint32_t kMagic = 0x56455254;  // "TREV"
constexpr std::uint32_t kVersion = 1;

}  // namespace

std::vector<std::uint8_t> VectorEnv::save_state() const {
  std::vector<std::uint8_t> out, own;
  append(out, kMagic);
  append(out, kVersion);
  append(out, hash_of(spec()));
  append(out, static_cast<std::uint64_t>(envs_.size()));
  append(out, static_cast<std::uint64_t>(started_));
  append(out, counters_);
  for (std::int64_t i = 0; i < count(); ++i) {
    append(out, episodes_[static_cast<std::size_t>(i)]);
    append(out, observation(i));
    own.clear();
    envs_[static_cast<std::size_t>(i)]->save_state(own);
    append(out, static_cast<std::uint64_t>(own.size()));
    append(out, std::span<const std::uint8_t>(own));
  }
  return out;
}

Result<void> VectorEnv::load_state(std::span<const std::uint8_t> bytes,
                                   std::span<float> observations) {
  const auto corrupt = [&](const std::string& what) {
    started_ = false;
    return fail(ErrorCode::kCorrupt,
                "the saved state of '" + spec().name + "' environments " + what);
  };
  if (!observations.empty())
    if (Result<void> fits = check_buffer(observations.size()); !fits) return fits;

  StateReader reader(bytes);
  std::uint32_t magic = 0, version = 0;
  std::uint64_t hash = 0, saved_count = 0, started = 0;
  VectorEnvCounters counters;
  if (!reader.read(magic) || !reader.read(version) || magic != kMagic)
    return corrupt("does not begin like one");
  if (version != kVersion)
    return corrupt("has version " + std::to_string(version) + ", not " + std::to_string(kVersion));
  if (!reader.read(hash) || !reader.read(saved_count) || !reader.read(started) ||
      !reader.read(counters))
    return corrupt("ends in its header");
  if (hash != hash_of(spec())) return corrupt("belongs to another task, or other bounds or limits");
  if (saved_count != envs_.size())
    return corrupt("holds " + std::to_string(saved_count) + " environments, not " +
                   std::to_string(envs_.size()));

  for (std::int64_t i = 0; i < count(); ++i) {
    if (Result<void> loaded = load_one(i, reader, started != 0); !loaded)
      return corrupt("is damaged in environment " + std::to_string(i) + ": " +
                     loaded.error().message);
    if (!observations.empty()) write_observation(i, row(observations, i));
  }
  if (!reader.at_end()) return corrupt("is longer than it should be");
  counters_ = counters;
  started_ = started != 0;
  return {};
}

Result<void> VectorEnv::load_one(std::int64_t index, StateReader& reader, bool started) {
  Episode& episode = episodes_[static_cast<std::size_t>(index)];
  const std::span<double> values = row(std::span<double>(observations_), index);
  std::uint64_t size = 0;
  bool complete = reader.read(episode) && reader.read(values) && reader.read(size);
  const std::span<const std::uint8_t> own =
      complete ? reader.take(size, complete) : std::span<const std::uint8_t>{};
  if (!complete) return fail(ErrorCode::kCorrupt, "the bytes end too early");
  if (episode.steps < 0 || !all_finite(values))
    return fail(ErrorCode::kCorrupt, "its episode step or observation is impossible");
  // Before the first reset there is no episode to restore.
  return started ? envs_[static_cast<std::size_t>(index)]->load_state(own) : Result<void>{};
}

}  // namespace troupe::envs
