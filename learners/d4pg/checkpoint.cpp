// Implements the checkpoint's files.
#include "learners/d4pg/checkpoint.hpp"

#include <array>
#include <string>

#include "learners/checkpoint_files.hpp"

namespace troupe::learners {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kStatistics = "normaliser.statistics";
constexpr const char *kTarget = "target_", *kFirst = "first_moment.", *kSecond = "second_moment.";
// Options that give the stored numbers their meaning: a checkpoint made with others is refused.
constexpr std::array kFixedOptions = {
    "v_min", "v_max", "atoms", "policy", "critic", "layer_norm", "normalise_observations"};

// One flat buffer and what stands before the names of its arrays in a file.
template <class Values>
struct Buffer {
  const models::FlatLayout& layout;
  Values& values;
  const char* prefix;
};

// Checkpoint may be const (saving) or not (loading): one list for both.
template <class Checkpoint>
auto parameter_buffers(const D4pgModel& model, Checkpoint& c) {
  using B = Buffer<std::remove_reference_t<decltype((c.policy))>>;
  return std::array<B, 4>{B{model.policy_layout, c.policy, ""},
                          B{model.critic_layout, c.critic, ""},
                          B{model.policy_layout, c.target_policy, kTarget},
                          B{model.critic_layout, c.target_critic, kTarget}};
}

template <class Checkpoint>
auto optimizer_buffers(const D4pgModel& model, Checkpoint& c) {
  using B = Buffer<std::remove_reference_t<decltype((c.policy))>>;
  return std::array<B, 4>{B{model.policy_layout, c.policy_first, kFirst},
                          B{model.policy_layout, c.policy_second, kSecond},
                          B{model.critic_layout, c.critic_first, kFirst},
                          B{model.critic_layout, c.critic_second, kSecond}};
}

template <class Buffers>
NamedArrays arrays_of(const Buffers& buffers) {
  NamedArrays arrays;
  for (const auto& buffer : buffers) add_flat(arrays, buffer.layout, buffer.values, buffer.prefix);
  return arrays;
}

template <class Buffers>
Result<void> take_arrays(const SafeTensors& arrays, const fs::path& file, const Buffers& buffers) {
  for (const auto& buffer : buffers)
    if (auto taken = take_flat(arrays, file.string(), buffer.layout, buffer.values, buffer.prefix);
        !taken)
      return taken;
  return {};
}

Result<models::RunningStatistics> take_statistics(const SafeTensors& arrays, const fs::path& file,
                                                  std::int64_t size) {
  const auto corrupt = [&](const char* what) {
    return fail(ErrorCode::kCorrupt, file.string() + " cannot be used: " + what + ".");
  };
  const auto found = arrays.tensors().find(kStatistics);
  if (found == arrays.tensors().end()) return corrupt("the normaliser's statistics are missing");
  auto statistics = models::RunningStatistics::decode(found->second.bytes);
  if (statistics && statistics->size() != size)
    return corrupt("the normaliser's statistics have another size");
  return statistics;
}

}  // namespace

std::vector<FileContent> encode_checkpoint(const D4pgModel& model,
                                           const D4pgCheckpoint& checkpoint) {
  NamedArrays optimizer = arrays_of(optimizer_buffers(model, checkpoint));
  std::vector<std::uint8_t> statistics;
  if (checkpoint.statistics) {
    statistics = checkpoint.statistics->encode();
    optimizer[kStatistics] = {
        DType::kU8, {static_cast<std::int64_t>(statistics.size())}, statistics};
  }
  const Json content = {{"updates", checkpoint.updates},
                        {"random", checkpoint.random},
                        {"observation", model.observation},
                        {"action", model.action},
                        {"options", options_json(model.options)}};
  return encode_learner_files("d4pg", content, arrays_of(parameter_buffers(model, checkpoint)),
                              optimizer);
}

Result<D4pgCheckpoint> load_checkpoint(const fs::path& directory, const D4pgModel& model) try {
  const Result<LearnerFiles> files = read_learner_files(directory, "d4pg");
  if (!files) return tl::unexpected(files.error());
  if (auto same = same_options(files->content.at("options"), options_json(model.options),
                               kFixedOptions, "d4pg");
      !same)
    return tl::unexpected(same.error());

  D4pgCheckpoint checkpoint;
  checkpoint.updates = files->content.at("updates").get<std::uint64_t>();
  checkpoint.random = files->content.at("random").get<Random::State>();
  const fs::path optimizer_path = directory / kOptimizerFile;
  Result<void> taken = take_arrays(files->parameters, directory / kParametersFile,
                                   parameter_buffers(model, checkpoint));
  if (taken)
    taken = take_arrays(files->optimizer, optimizer_path, optimizer_buffers(model, checkpoint));
  if (!taken) return tl::unexpected(taken.error());
  if (model.options.normalise_observations) {
    auto statistics = take_statistics(files->optimizer, optimizer_path, model.observation);
    if (!statistics) return tl::unexpected(statistics.error());
    checkpoint.statistics = *std::move(statistics);
  }
  return checkpoint;
} catch (const Json::exception& error) {
  return corrupt_manifest(directory, error);
}

}  // namespace troupe::learners
