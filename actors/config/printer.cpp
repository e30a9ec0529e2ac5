// Values are printed here rather than by yaml-cpp's emitter, whose quoting follows YAML 1.1: `yes`
// and `1e-4` would come out differently from how the reader takes them.
#include "actors/config/printer.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "actors/config/scalars.hpp"
#include "envs/spec/fnv.hpp"

namespace troupe::actors {
namespace {

using Json = nlohmann::ordered_json;

// Words of letters, digits and / . _ - that no reader takes for another type. All else is quoted as
// a JSON string, which YAML 1.2 includes.
bool is_plain(const std::string& text) {
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text[0])) == 0) return false;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 &&
        std::string_view("/._-").find(c) == std::string_view::npos) {
      return false;
    }
  }
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* word : {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}) {
    if (lower == word) return false;
  }
  return true;
}

std::string yaml_text(bool value) { return value ? "true" : "false"; }
std::string yaml_text(std::int64_t value) { return std::to_string(value); }
std::string yaml_text(double value) { return text_of(value); }
std::string yaml_text(Duration value) { return text_of(value); }
std::string yaml_text(const std::string& value) {
  return is_plain(value) ? value : Json(value).dump();
}
template <class T>
std::string yaml_text(const std::vector<T>& values) {
  std::string text = "[";
  for (const T& value : values) text += (text.size() > 1 ? ", " : "") + yaml_text(value);
  return text + "]";
}
template <class T>
std::string yaml_text(const std::optional<T>& value) {
  return value ? yaml_text(*value) : "null";
}

Json json_value(const Field& field) {
  return std::visit(
      [](const auto* target) -> Json {
        using T = std::remove_cvref_t<decltype(*target)>;
        if constexpr (std::is_same_v<T, Duration>) {
          return text_of(*target);
        } else if constexpr (std::is_same_v<T, std::optional<Duration>>) {
          return *target ? Json(text_of(**target)) : Json();
        } else if constexpr (std::is_same_v<T, std::optional<double>> ||
                             std::is_same_v<T, std::optional<std::int64_t>>) {
          return *target ? Json(**target) : Json();
        } else {
          return *target;
        }
      },
      field.target);
}

std::vector<std::string> parts_of(const std::string& key) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', begin)) {
    parts.push_back(key.substr(begin, dot - begin));
    begin = dot + 1;
  }
  parts.push_back(key.substr(begin));
  return parts;
}

// Walks over the fields; opens each section before its first field and leaves it by indentation.
std::string print(const Description& description, const Origins& origins) {
  std::string text;
  std::vector<std::string> section;
  for (const Field& field : description.fields) {
    const std::vector<std::string> parts = parts_of(field.key);
    const std::size_t depth = parts.size() - 1;
    std::size_t common = 0;
    while (common < std::min(depth, section.size()) && section[common] == parts[common]) ++common;
    section.assign(parts.begin(), parts.end() - 1);
    for (std::size_t level = common; level < depth; ++level) {
      if (level == 0) text += "\n";
      text.append(2 * level, ' ').append(parts[level]).append(":\n");
    }
    text.append(2 * depth, ' ').append(parts.back()).append(": ").append(yaml_value(field));
    const auto origin = origins.find(field.key);
    if (origin != origins.end()) text += "  # " + origin->second.text();
    text += "\n";
  }
  return text;
}

}  // namespace

std::string yaml_value(const Field& field) {
  // `processes: 0` stays bare: the choice is a number to its reader.
  if (const auto* const* target = std::get_if<std::string*>(&field.target)) {
    if (!field.choices.empty() && core_integer(**target)) return **target;
  }
  return std::visit([](const auto* target) { return yaml_text(*target); }, field.target);
}

std::string print_yaml(const RunOptions& options) {
  RunOptions copy = options;
  return print(description_of(copy), {});
}

std::string print_yaml(const LoadedConfig& config) {
  RunOptions copy = config.options;
  return print(description_of(copy), config.origins);
}

std::string print_json(const RunOptions& options) {
  RunOptions copy = options;
  const Description description = description_of(copy);
  Json root = Json::object();
  for (const Field& field : description.fields) {
    const std::vector<std::string> parts = parts_of(field.key);
    Json* object = &root;
    for (std::size_t level = 0; level + 1 < parts.size(); ++level)
      object = &(*object)[parts[level]];
    (*object)[parts.back()] = json_value(field);
  }
  return root.dump(2) + "\n";
}

std::string config_hash(const RunOptions& options) {
  const std::string text = print_yaml(options);
  Fnv1a hash;
  hash.bytes(text.data(), text.size());
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx",
                static_cast<unsigned long long>(hash.value()));
  return digits.data();
}

}  // namespace troupe::actors
