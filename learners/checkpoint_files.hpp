// The files of a learner's checkpoint, whatever it learns: arrays as safetensors, and a manifest
// with everything else and the sizes and checksums of the others. Torch-free; any thread.
//   parameters.safetensors, optimizer.safetensors, learner.json (written last)
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "envs/spec/files.hpp"
#include "envs/spec/options.hpp"
#include "learners/safetensors.hpp"
#include "models/inference/dense_layers.hpp"

namespace troupe::learners {

inline constexpr const char* kParametersFile = "parameters.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kLearnerFile = "learner.json";

using NamedArrays = std::map<std::string, TensorBytes>;

inline std::span<const std::uint8_t> raw_bytes(std::span<const float> values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()};
}

// The arrays of a flat buffer, each name behind `prefix`. `values` outlives `arrays`.
void add_flat(NamedArrays& arrays, const models::FlatLayout& layout, std::span<const float> values,
              const std::string& prefix);
// The inverse, padding 0. kCorrupt for a missing array or another shape, kNotFinite naming array
// and file.
Result<void> take_flat(const SafeTensors& arrays, const std::string& file,
                       const models::FlatLayout& layout, std::vector<float>& values,
                       const std::string& prefix);

// `content` is what the manifest says beside the files; "format", "algorithm" and "files" are
// added.
std::vector<FileContent> encode_learner_files(const std::string& algorithm, nlohmann::json content,
                                              const NamedArrays& parameters,
                                              const NamedArrays& optimizer);

struct LearnerFiles {
  nlohmann::json content;
  SafeTensors parameters, optimizer;
};
// Checks sizes and checksums. kNotFound, kCorrupt (also of another algorithm), naming the file.
Result<LearnerFiles> read_learner_files(const std::filesystem::path& directory,
                                        const std::string& algorithm);

// What a manifest's key that is missing or of another type comes to.
tl::unexpected<Error> corrupt_manifest(const std::filesystem::path& directory,
                                       const nlohmann::json::exception& error);

// Collects a described struct as JSON; groups are objects.
class JsonOptions {
 public:
  template <class T>
  void field(const char* name, const T& value, Bounds, std::string_view) {
    json[name] = value;
  }
  void field(const char* name, bool value, std::string_view) { json[name] = value; }
  void field(const char* name, const std::string& value, std::string_view) { json[name] = value; }
  template <class Choices = std::initializer_list<const char*>>
  void choice(const char* name, const std::string& value, Choices, std::string_view) {
    json[name] = value;
  }
  template <class T>
  void group(const char* name, T& options, std::string_view) {
    JsonOptions inner;
    describe(inner, options);
    json[name] = inner.json;
  }
  nlohmann::json json = nlohmann::json::object();
};

template <class Options>
nlohmann::json options_json(Options options) {
  JsonOptions visitor;
  describe(visitor, options);
  return visitor.json;
}

// kInvalidArgument when one of the `names` has another value in `saved` than in `current`:
// "The checkpoint was made with d4pg.atoms = 51, but it is now 101."
Result<void> same_options(const nlohmann::json& saved, const nlohmann::json& current,
                          std::span<const char* const> names, const std::string& section);

}  // namespace troupe::learners
