#include "learners/checkpoint_files.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/inference/checksum.hpp"

namespace troupe::learners {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kFormat = 1;

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

Result<Json> read_content(const fs::path& path, const std::string& algorithm) {
  const Result<std::vector<std::uint8_t>> bytes = read_file(path);
  if (!bytes) return tl::unexpected(bytes.error());
  const Json json = Json::parse(bytes->begin(), bytes->end(), nullptr, false);
  if (!json.is_object() || !json.contains("content") || !json.contains("crc32c"))
    return corrupt(path, "it is not a learner's manifest");
  const Json& content = json["content"];
  if (json["crc32c"] != checksum_of(content)) return corrupt(path, "its checksum does not match");
  if (content.value("format", 0) != kFormat || content.value("algorithm", "") != algorithm)
    return corrupt(path, "it is of another format or algorithm");
  return content;
}

Result<SafeTensors> read_arrays(const fs::path& path, const Json& entry) {
  Result<std::vector<std::uint8_t>> bytes = read_file(path);
  if (!bytes) return tl::unexpected(bytes.error());
  if (bytes->size() != entry.at("bytes").get<std::uint64_t>())
    return corrupt(path, "it has " + std::to_string(bytes->size()) + " bytes instead of " +
                             entry.at("bytes").dump());
  if (models::checksum(*bytes) != entry.at("crc32c").get<std::uint32_t>())
    return corrupt(path, "its checksum does not match");
  return SafeTensors::decode(*std::move(bytes), path.string());
}

template <class Values>
auto part(Values& values, const models::Segment& segment) {
  return std::span(values).subspan(static_cast<std::size_t>(segment.offset),
                                   static_cast<std::size_t>(segment.elements));
}

}  // namespace

void add_flat(NamedArrays& arrays, const models::FlatLayout& layout, std::span<const float> values,
              const std::string& prefix) {
  for (const models::Segment& segment : layout.segments)
    arrays[prefix + segment.name] = {DType::kF32, segment.shape, raw_bytes(part(values, segment))};
}

Result<void> take_flat(const SafeTensors& arrays, const std::string& file,
                       const models::FlatLayout& layout, std::vector<float>& values,
                       const std::string& prefix) {
  values.assign(static_cast<std::size_t>(layout.size), 0.0F);
  for (const models::Segment& segment : layout.segments) {
    const std::span<float> to = part(values, segment);
    const std::string name = prefix + segment.name;
    if (Result<void> copied = arrays.copy(name, segment.shape, to); !copied) return copied;
    if (!std::all_of(to.begin(), to.end(), [](float v) { return std::isfinite(v); }))
      return fail(ErrorCode::kNotFinite,
                  "Array '" + name + "' of " + file + " holds a value that is not finite.");
  }
  return {};
}

std::vector<FileContent> encode_learner_files(const std::string& algorithm, Json content,
                                              const NamedArrays& parameters,
                                              const NamedArrays& optimizer) {
  std::vector<std::uint8_t> parameter_bytes = encode_safetensors(parameters);
  std::vector<std::uint8_t> optimizer_bytes = encode_safetensors(optimizer);
  content["format"] = kFormat;
  content["algorithm"] = algorithm;
  content["files"] = {{kParametersFile, file_entry(parameter_bytes)},
                      {kOptimizerFile, file_entry(optimizer_bytes)}};
  const std::string text =
      Json{{"content", content}, {"crc32c", checksum_of(content)}}.dump(2) + "\n";
  std::vector<FileContent> files;
  files.push_back({kParametersFile, std::move(parameter_bytes)});
  files.push_back({kOptimizerFile, std::move(optimizer_bytes)});
  files.push_back({kLearnerFile, {text.begin(), text.end()}});
  return files;
}

Result<LearnerFiles> read_learner_files(const fs::path& directory,
                                        const std::string& algorithm) try {
  Result<Json> content = read_content(directory / kLearnerFile, algorithm);
  if (!content) return tl::unexpected(content.error());
  const Json& files = content->at("files");
  Result<SafeTensors> parameters =
      read_arrays(directory / kParametersFile, files.at(kParametersFile));
  if (!parameters) return tl::unexpected(parameters.error());
  Result<SafeTensors> optimizer = read_arrays(directory / kOptimizerFile, files.at(kOptimizerFile));
  if (!optimizer) return tl::unexpected(optimizer.error());
  return LearnerFiles{*std::move(content), *std::move(parameters), *std::move(optimizer)};
} catch (const Json::exception& error) {
  return corrupt_manifest(directory, error);
}

tl::unexpected<Error> corrupt_manifest(const fs::path& directory, const Json::exception& error) {
  return corrupt(directory / kLearnerFile,
                 std::string("a key is missing or of another type (") + error.what() + ")");
}

Result<void> same_options(const Json& saved, const Json& current,
                          std::span<const char* const> names, const std::string& section) {
  for (const char* name : names)
    if (saved.at(name) != current.at(name))
      return fail(ErrorCode::kInvalidArgument,
                  "The checkpoint was made with " + section + "." + name + " = " +
                      saved.at(name).dump() + ", but it is now " + current.at(name).dump() + ".");
  return {};
}

}  // namespace troupe::learners
