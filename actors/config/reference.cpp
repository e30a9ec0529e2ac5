// Text and schema are two walks over the description of fresh options, whose values are the
// defaults.
#include "actors/config/reference.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>
#include <vector>

#include "actors/config/description.hpp"
#include "actors/config/nearest.hpp"
#include "actors/config/printer.hpp"
#include "actors/config/run_options.hpp"
#include "actors/config/values.hpp"

namespace troupe::actors {
namespace {

using Json = nlohmann::ordered_json;

std::string section_of(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

std::string field_text(const Field& field) {
  const std::string range = allowed_range(field);
  std::string text = "  " + field.key + ": " + yaml_value(field);
  text.append(text.size() < 40 ? 40 - text.size() : 2, ' ');
  text += expected_type(field) + (range.empty() ? "" : ", " + range) + "\n";
  return text + "      " + field.doc + "\n";
}

std::string section_text(const Description& description, const Group& group) {
  std::string text = group.key + ":  " + group.doc + "\n";
  for (const Field& field : description.fields) {
    if (section_of(field.key) == group.key) text += field_text(field);
  }
  return text;
}

// Bounds of a number, for the schema.
void add_bounds(Json& schema, const Bounds& bounds) {
  if (std::isfinite(bounds.low)) {
    schema[bounds.low_open ? "exclusiveMinimum" : "minimum"] = bounds.low;
  }
  if (std::isfinite(bounds.high)) {
    schema[bounds.high_open ? "exclusiveMaximum" : "maximum"] = bounds.high;
  }
}

// Choices as YAML reads them: `null` and `0` written bare are no strings to an editor.
Json choice_schema(const Field& field) {
  Json values = Json::array();
  for (const std::string& choice : field.choices) {
    values.push_back(choice);
    if (choice == "null") values.push_back(nullptr);
    if (choice == "0") values.push_back(0);
  }
  return Json{{"enum", values}};
}

template <class T>
Json type_schema(const Field& field) {
  constexpr const char* kDurationPattern = "^[0-9]+(\\.[0-9]+)?(ms|s|m|h)$";
  Json schema;
  if constexpr (std::is_same_v<T, bool>) {
    schema["type"] = "boolean";
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    schema["type"] = "integer";
    add_bounds(schema, field.bounds);
  } else if constexpr (std::is_same_v<T, double>) {
    schema["type"] = "number";
    add_bounds(schema, field.bounds);
  } else if constexpr (std::is_same_v<T, Duration>) {
    schema["type"] = "string";
    schema["pattern"] = kDurationPattern;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!field.choices.empty()) return choice_schema(field);
    schema["type"] = "string";
  } else if constexpr (std::is_same_v<T, std::vector<typename T::value_type>>) {
    schema["type"] = "array";
    schema["items"] = type_schema<typename T::value_type>(field);
  } else {  // std::optional
    schema = type_schema<typename T::value_type>(field);
    schema["type"] = Json::array({schema["type"], "null"});
  }
  return schema;
}

Json field_schema(const Field& field) {
  Json schema = std::visit(
      [&](const auto* target) {
        return type_schema<std::remove_cvref_t<decltype(*target)>>(field);
      },
      field.target);
  schema["description"] = field.doc + " Default: " + yaml_value(field) + ".";
  return schema;
}

Json section_schema(const Description& description, const std::string& section) {
  Json properties = Json::object();
  for (const Field& field : description.fields) {
    if (section_of(field.key) != section) continue;
    properties[field.key.substr(section.empty() ? 0 : section.size() + 1)] = field_schema(field);
  }
  for (const Group& group : description.groups) {
    if (section_of(group.key) != section) continue;
    Json inner = section_schema(description, group.key);
    inner["description"] = group.doc;
    properties[group.key.substr(section.empty() ? 0 : section.size() + 1)] = inner;
  }
  return Json{{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
}

}  // namespace

std::string reference_text() {
  RunOptions defaults;
  const Description description = description_of(defaults);
  std::string text =
      "Every key of a configuration file with its default, type and range.\n"
      "`extends: FILE` takes over another file's keys; --set section.key=value overrides any.\n\n";
  for (const Field& field : description.fields) {
    if (section_of(field.key).empty()) text += field_text(field);
  }
  for (const Group& group : description.groups) text += "\n" + section_text(description, group);
  return text;
}

Result<std::string> reference_text(const std::string& key) {
  RunOptions defaults;
  const Description description = description_of(defaults);
  if (const Field* field = description.find_field(key)) return field_text(*field);
  if (const Group* group = description.find_group(key)) return section_text(description, *group);
  std::vector<std::string> names;
  std::string same_ending;
  for (const Group& group : description.groups) names.push_back(group.key);
  for (const Field& field : description.fields) {
    names.push_back(field.key);
    if (field.key.ends_with("." + key)) same_ending = field.key;
  }
  const std::string nearest = same_ending.empty() ? nearest_name(key, names) : same_ending;
  return fail(ErrorCode::kNotFound, "unknown key " + key +
                                        (nearest.empty() ? "; `troupe help config` lists all keys"
                                                         : "; did you mean " + nearest + "?"));
}

std::string reference_schema() {
  RunOptions defaults;
  const Description description = description_of(defaults);
  Json schema = section_schema(description, "");
  schema["properties"]["extends"] = {
      {"type", "string"},
      {"description", "A file, relative to this one, whose keys are taken over."}};
  Json root{{"$schema", "http://json-schema.org/draft-07/schema#"},
            {"title", "Configuration of a Troupe run"}};
  root.update(schema);
  return root.dump(2) + "\n";
}

}  // namespace troupe::actors
