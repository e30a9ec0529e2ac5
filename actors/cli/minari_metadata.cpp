// Spaces as Gymnasium's classes, which Minari writes as JSON inside JSON.
#include "actors/cli/minari_metadata.hpp"

#include "replay/signature.hpp"

namespace troupe::actors::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMinariVersion = "0.5.0";  // of the layout: what 0.5.0 and later read

Json filled(const std::vector<std::int64_t>& shape, const Json& value, std::size_t axis = 0) {
  if (axis == shape.size()) return value;
  Json list = Json::array();
  for (std::int64_t i = 0; i < shape[axis]; ++i) list.push_back(filled(shape, value, axis + 1));
  return list;
}

Json box(const char* dtype, const std::vector<std::int64_t>& shape, const Json& low,
         const Json& high) {
  return {{"type", "Box"},
          {"dtype", dtype},
          {"shape", shape},
          {"low", filled(shape, low)},
          {"high", filled(shape, high)}};
}

// Floats have no bounds here; JSON has no infinity, so the largest float stands for it.
Json space_of(const Column& column) {
  if (column.dtype == DType::kU8) return box("uint8", column.shape, 0, 255);
  constexpr double kLargest = 3.4028234663852886e38;
  return box("float32", column.shape, -kLargest, kLargest);
}

Json observation_space(const replay::Signature& signature) {
  if (signature.observation.size() == 1) return space_of(signature.observation.front());
  Json spaces = Json::object();
  for (const Column& column : signature.observation) spaces[column.name] = space_of(column);
  return {{"type", "Dict"}, {"subspaces", spaces}};
}

Json action_space(const ActionSpec& action) {
  if (action.discrete)
    return {{"type", "Discrete"}, {"dtype", "int64"}, {"start", 0}, {"n", action.choices}};
  return box("float32", {action.elements()}, -1.0, 1.0);
}

}  // namespace

Json minari_metadata(const EnvSpec& spec, const std::string& id,
                     const replay::EpisodeTotals& totals) {
  return {{"total_episodes", totals.episodes},
          {"total_steps", totals.steps},
          {"data_format", "hdf5"},
          {"observation_space", observation_space(replay::signature_of(spec)).dump()},
          {"action_space", action_space(spec.action).dump()},
          {"dataset_id", id},
          {"minari_version", kMinariVersion},
          {"description", "Episodes of " + spec.name + " from a replay; actions in [-1, 1]"},
          {"dataset_size", static_cast<double>(totals.bytes) / 1e6}};
}

}  // namespace troupe::actors::cli
