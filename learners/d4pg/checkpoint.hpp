// The D4PG learner's checkpoint as plain values: three files in one folder, torch-free. Any thread.
//   parameters.safetensors   policy.*, critic.*, target_policy.*, target_critic.* (f32)
//   optimizer.safetensors    first_moment.<parameter>, second_moment.<parameter>,
//                            normaliser statistics
//   learner.json             counters, generator, hyper-parameters, sizes and CRC-32C of the others
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "envs/spec/files.hpp"
#include "envs/spec/random.hpp"
#include "learners/d4pg/step.hpp"
#include "models/inference/normaliser.hpp"

namespace troupe::learners {

struct D4pgCheckpoint {
  std::uint64_t updates = 0;
  Random::State random{};
  // Flat buffers in the layouts of the model, padding included.
  std::vector<float> policy, critic, target_policy, target_critic;
  std::vector<float> policy_first, policy_second, critic_first, critic_second;  // Adam's moments
  std::optional<models::RunningStatistics> statistics;  // when the normaliser is on
};

// The three files, learner.json last.
std::vector<FileContent> encode_checkpoint(const D4pgModel& model,
                                           const D4pgCheckpoint& checkpoint);

// Checks everything before it returns: checksums, shapes, that values are finite, and that networks
// and support are those of `model` (kInvalidArgument naming the option). kCorrupt and kNotFound
// name the file.
Result<D4pgCheckpoint> load_checkpoint(const std::filesystem::path& directory,
                                       const D4pgModel& model);

}  // namespace troupe::learners
