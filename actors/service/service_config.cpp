// The file is read as YAML, and from then on as the JSON that clients send, by the same reader.
#include "actors/service/service_config.hpp"

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "actors/config/scalars.hpp"
#include "actors/config/source.hpp"

namespace troupe::actors {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 16;

Json scalar_json(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // in quotes
  if (const auto boolean = core_boolean(text)) return *boolean;
  if (const auto integer = core_integer(text); integer && integer->in_range) {
    if (integer->value >= 0) return static_cast<std::uint64_t>(integer->value);
    return integer->value;
  }
  if (const auto number = core_number(text)) return *number;
  return text;
}

Result<Json> json_of(const YAML::Node& node, const Source& source, int depth) {
  const auto refuse = [&](const std::string& what) {
    return fail(ErrorCode::kInvalidArgument, source.place(node.Mark().line) + ": " + what);
  };
  if (depth > kMaxDepth) return refuse("is nested too deeply");
  if (node.IsScalar()) return scalar_json(node);
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const YAML::Node& entry : node) {
      auto value = json_of(entry, source, depth + 1);
      if (!value) return value;
      list.push_back(*std::move(value));
    }
    return list;
  }
  Json object = Json::object();
  if (!node.IsMap()) return object;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) return refuse("has a key that is no text");
    const std::string& key = entry.first.Scalar();
    if (object.contains(key)) return refuse("has the key '" + key + "' twice");
    auto value = json_of(entry.second, source, depth + 1);
    if (!value) return value;
    object[key] = *std::move(value);
  }
  return object;
}

// Reads one key of the top level; false when its value has the wrong type.
bool read_key(const std::string& key, const Json& value, ServiceOptions& options) {
  const auto integer = [&](std::int64_t& target) {
    if (!value.is_number_integer()) return false;
    target = value.get<std::int64_t>();
    return true;
  };
  if (key == "endpoint" && value.is_string()) {
    options.endpoint = value.get<std::string>();
    return true;
  }
  if (key == "checkpoint_directory" && value.is_string()) {
    options.checkpoint_directory = value.get<std::string>();
    return true;
  }
  if (key == "disk" && value.is_string()) {
    options.disk_folder = value.get<std::string>();
    return true;
  }
  if (key == "disk_mib") return integer(options.disk_mib);
  if (key == "max_message_mib") return integer(options.max_message_mib);
  if (key == "max_table_mib") return integer(options.max_table_mib);
  if (key == "max_clients") return integer(options.max_clients);
  if (key == "credit") return integer(options.credit);
  return false;
}

constexpr const char* kKeys =
    "endpoint, checkpoint_directory, disk, disk_mib, max_message_mib, max_table_mib, max_clients, "
    "credit and "
    "tables";

}  // namespace

Result<void> read_service_config(const std::filesystem::path& path, ServiceConfig& config) {
  const auto source = file_source(path, "");
  if (!source) return tl::unexpected(source.error());
  const auto node = parse(*source);
  if (!node) return tl::unexpected(node.error());
  const auto json = json_of(*node, *source, 0);
  if (!json) return tl::unexpected(json.error());
  const auto refuse = [&](const std::string& what) {
    return fail(ErrorCode::kInvalidArgument, path.string() + ": " + what);
  };
  if (!json->is_object()) return refuse("is no mapping of keys to values");
  for (const auto& [key, value] : json->items())
    if (key != "tables" && !read_key(key, value, config.options))
      return refuse("'" + key + "' is no known key or has a value of the wrong type; keys are " +
                    kKeys);
  const Json tables = json->value("tables", Json::array());
  if (!tables.is_array()) return refuse("tables is no list");
  const auto row = static_cast<std::uint64_t>(config.options.max_message_mib) << 18;
  for (const Json& entry : tables) {
    auto table = read_table_request(entry, row);
    if (!table) return refuse(table.error().message);
    if (!table->declares) return refuse("table '" + table->name + "' has no columns");
    config.tables.push_back(*std::move(table));
  }
  return {};
}

}  // namespace troupe::actors
