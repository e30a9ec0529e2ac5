// Implements the checkpoint's files.
#include "learners/d4pg/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "envs/spec/files.hpp"
#include "learners/safetensors.hpp"
#include "models/inference/checksum.hpp"

namespace troupe::learners {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Tensors = std::map<std::string, TensorBytes>;

constexpr const char* kParametersFile = "parameters.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kLearnerFile = "learner.json";
constexpr const char* kStatistics = "normaliser.statistics";
constexpr int kFormat = 1;
// Options that give the stored numbers their meaning: a checkpoint made with others is refused.
constexpr std::array kFixedOptions = {
    "v_min", "v_max", "atoms", "policy", "critic", "layer_norm", "normalise_observations"};

// Collects a described struct as JSON.
class JsonVisitor {
 public:
  template <class T>
  void field(const char* name, const T& value, Bounds, std::string_view) {
    json[name] = value;
  }
  void field(const char* name, bool value, std::string_view) { json[name] = value; }
  template <class Choices = std::initializer_list<const char*>>
  void choice(const char* name, const std::string& value, Choices, std::string_view) {
    json[name] = value;
  }
  Json json = Json::object();
};

Json options_of(const D4pgModel& model) {
  JsonVisitor visitor;
  D4pgOptions options = model.options;
  describe(visitor, options);
  return visitor.json;
}

std::span<const std::uint8_t> raw(std::span<const float> values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()};
}

// "policy.linear_0.weight" under another first word or behind a prefix.
std::string target_name(const std::string& name) { return "target_" + name; }
std::string first_name(const std::string& name) { return "first_moment." + name; }
std::string second_name(const std::string& name) { return "second_moment." + name; }

// One flat buffer and how its arrays are called in a file.
template <class Values>
struct Buffer {
  const models::FlatLayout& layout;
  Values& values;
  std::string (*name)(const std::string&);
};

std::string own_name(const std::string& name) { return name; }

// Checkpoint may be const (saving) or not (loading): one list for both.
template <class Checkpoint>
auto parameter_buffers(const D4pgModel& model, Checkpoint& c) {
  using B = Buffer<std::remove_reference_t<decltype((c.policy))>>;
  return std::array<B, 4>{B{model.policy_layout, c.policy, own_name},
                          B{model.critic_layout, c.critic, own_name},
                          B{model.policy_layout, c.target_policy, target_name},
                          B{model.critic_layout, c.target_critic, target_name}};
}

template <class Checkpoint>
auto optimizer_buffers(const D4pgModel& model, Checkpoint& c) {
  using B = Buffer<std::remove_reference_t<decltype((c.policy))>>;
  return std::array<B, 4>{B{model.policy_layout, c.policy_first, first_name},
                          B{model.policy_layout, c.policy_second, second_name},
                          B{model.critic_layout, c.critic_first, first_name},
                          B{model.critic_layout, c.critic_second, second_name}};
}

template <class Buffers>
void add_arrays(Tensors& tensors, const Buffers& buffers) {
  for (const auto& buffer : buffers)
    for (const models::Segment& segment : buffer.layout.segments)
      tensors[buffer.name(segment.name)] = {
          DType::kF32, segment.shape,
          raw(std::span<const float>(buffer.values)
                  .subspan(static_cast<std::size_t>(segment.offset),
                           static_cast<std::size_t>(segment.elements)))};
}

template <class Buffers>
Result<void> take_arrays(const SafeTensors& tensors, const std::string& file,
                         const Buffers& buffers) {
  for (const auto& buffer : buffers) {
    buffer.values.assign(static_cast<std::size_t>(buffer.layout.size), 0.0F);
    for (const models::Segment& segment : buffer.layout.segments) {
      const auto values = std::span<float>(buffer.values)
                              .subspan(static_cast<std::size_t>(segment.offset),
                                       static_cast<std::size_t>(segment.elements));
      const std::string name = buffer.name(segment.name);
      if (Result<void> copied = tensors.copy(name, segment.shape, values); !copied) return copied;
      if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
        return fail(ErrorCode::kNotFinite,
                    "Array '" + name + "' of " + file + " holds a value that is not finite.");
    }
  }
  return {};
}

Json file_entry(std::span<const std::uint8_t> bytes) {
  return {{"bytes", bytes.size()}, {"crc32c", models::checksum(bytes)}};
}

std::uint32_t checksum_of(const Json& content) {
  const std::string text = content.dump();
  return models::checksum({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

tl::unexpected<Error> corrupt(const fs::path& path, const std::string& what) {
  return fail(ErrorCode::kCorrupt, path.string() + " cannot be used: " + what + ".");
}

// The checked content of learner.json.
Result<Json> read_content(const fs::path& path) {
  const Result<std::vector<std::uint8_t>> bytes = read_file(path);
  if (!bytes) return tl::unexpected(bytes.error());
  const Json json = Json::parse(bytes->begin(), bytes->end(), nullptr, false);
  if (!json.is_object() || !json.contains("content") || !json.contains("crc32c"))
    return corrupt(path, "it is not a learner's manifest");
  const Json& content = json["content"];
  if (json["crc32c"] != checksum_of(content)) return corrupt(path, "its checksum does not match");
  if (content.value("format", 0) != kFormat || content.value("algorithm", "") != "d4pg")
    return corrupt(path, "it is of another format or algorithm");
  return content;
}

Result<SafeTensors> read_tensors(const fs::path& path, const Json& entry) {
  Result<std::vector<std::uint8_t>> bytes = read_file(path);
  if (!bytes) return tl::unexpected(bytes.error());
  if (bytes->size() != entry.at("bytes").get<std::uint64_t>())
    return corrupt(path, "it has " + std::to_string(bytes->size()) + " bytes instead of " +
                             entry.at("bytes").dump());
  if (models::checksum(*bytes) != entry.at("crc32c").get<std::uint32_t>())
    return corrupt(path, "its checksum does not match");
  return SafeTensors::decode(*std::move(bytes), path.string());
}

Result<void> check_options(const Json& saved, const D4pgModel& model) {
  const Json current = options_of(model);
  for (const char* name : kFixedOptions)
    if (saved.at(name) != current.at(name))
      return fail(ErrorCode::kInvalidArgument,
                  "The checkpoint was made with d4pg." + std::string(name) + " = " +
                      saved.at(name).dump() + ", but it is now " + current.at(name).dump() + ".");
  return {};
}

}  // namespace

std::vector<FileContent> encode_checkpoint(const D4pgModel& model,
                                           const D4pgCheckpoint& checkpoint) {
  Tensors parameters, optimizer;
  add_arrays(parameters, parameter_buffers(model, checkpoint));
  add_arrays(optimizer, optimizer_buffers(model, checkpoint));
  std::vector<std::uint8_t> statistics;
  if (checkpoint.statistics) {
    statistics = checkpoint.statistics->encode();
    optimizer[kStatistics] = {
        DType::kU8, {static_cast<std::int64_t>(statistics.size())}, statistics};
  }
  std::vector<std::uint8_t> parameter_bytes = encode_safetensors(parameters);
  std::vector<std::uint8_t> optimizer_bytes = encode_safetensors(optimizer);
  const Json content = {{"format", kFormat},
                        {"algorithm", "d4pg"},
                        {"updates", checkpoint.updates},
                        {"random", checkpoint.random},
                        {"observation", model.observation},
                        {"action", model.action},
                        {"options", options_of(model)},
                        {"files",
                         {{kParametersFile, file_entry(parameter_bytes)},
                          {kOptimizerFile, file_entry(optimizer_bytes)}}}};
  const std::string text =
      Json{{"content", content}, {"crc32c", checksum_of(content)}}.dump(2) + "\n";
  std::vector<FileContent> files;
  files.push_back({kParametersFile, std::move(parameter_bytes)});
  files.push_back({kOptimizerFile, std::move(optimizer_bytes)});
  files.push_back({kLearnerFile, {text.begin(), text.end()}});
  return files;
}

Result<D4pgCheckpoint> load_checkpoint(const fs::path& directory, const D4pgModel& model) try {
  const Result<Json> content = read_content(directory / kLearnerFile);
  if (!content) return tl::unexpected(content.error());
  if (Result<void> same = check_options(content->at("options"), model); !same)
    return tl::unexpected(same.error());

  D4pgCheckpoint checkpoint;
  checkpoint.updates = content->at("updates").get<std::uint64_t>();
  checkpoint.random = content->at("random").get<Random::State>();
  const fs::path parameter_path = directory / kParametersFile;
  const fs::path optimizer_path = directory / kOptimizerFile;
  const Json& files = content->at("files");
  const Result<SafeTensors> parameters = read_tensors(parameter_path, files.at(kParametersFile));
  if (!parameters) return tl::unexpected(parameters.error());
  const Result<SafeTensors> optimizer = read_tensors(optimizer_path, files.at(kOptimizerFile));
  if (!optimizer) return tl::unexpected(optimizer.error());

  Result<void> taken =
      take_arrays(*parameters, parameter_path.string(), parameter_buffers(model, checkpoint));
  if (taken)
    taken = take_arrays(*optimizer, optimizer_path.string(), optimizer_buffers(model, checkpoint));
  if (!taken) return tl::unexpected(taken.error());
  if (model.options.normalise_observations) {
    const auto found = optimizer->tensors().find(kStatistics);
    if (found == optimizer->tensors().end())
      return corrupt(optimizer_path, "the normaliser's statistics are missing");
    Result<models::RunningStatistics> statistics =
        models::RunningStatistics::decode(found->second.bytes);
    if (!statistics) return tl::unexpected(statistics.error());
    if (statistics->size() != model.observation)
      return corrupt(optimizer_path, "the normaliser's statistics have another size");
    checkpoint.statistics = *std::move(statistics);
  }
  return checkpoint;
} catch (const Json::exception& error) {
  return corrupt(directory / kLearnerFile,
                 std::string("a key is missing or of another type (") + error.what() + ")");
}

}  // namespace troupe::learners
