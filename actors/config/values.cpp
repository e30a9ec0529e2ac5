// Scalars are typed here by YAML 1.2's core schema, never by yaml-cpp's own conversions (those are
// YAML 1.1).
#include "actors/config/values.hpp"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "actors/config/nearest.hpp"
#include "actors/config/scalars.hpp"
#include "envs/spec/result.hpp"

namespace troupe::actors {
namespace {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// yaml-cpp's tags: "?" for plain, "!" for quoted, anything else was written with ! or !!.
bool is_quoted(const YAML::Node& node) { return node.Tag() == "!"; }
bool has_own_tag(const YAML::Node& node) {
  return !node.Tag().empty() && node.Tag() != "?" && node.Tag() != "!";
}

// A null that was spelt out as the word, which yaml-cpp does not keep.
bool is_word_null(const YAML::Node& node, std::string_view source) {
  const int position = node.Mark().pos;
  return node.IsNull() && position >= 0 && static_cast<std::size_t>(position) < source.size() &&
         source.substr(static_cast<std::size_t>(position), 4) == "null";
}

bool within(double value, const Bounds& bounds) {
  const bool high_enough = bounds.low_open ? value > bounds.low : value >= bounds.low;
  const bool low_enough = bounds.high_open ? value < bounds.high : value <= bounds.high;
  return high_enough && low_enough;
}

bool is_duration(const Field& field) {
  return std::holds_alternative<Duration*>(field.target) ||
         std::holds_alternative<std::optional<Duration>*>(field.target);
}

std::string bound_text(const Field& field, double bound) {
  if (is_duration(field)) return text_of(Duration(static_cast<std::int64_t>(bound)));
  return text_of(bound);
}

const char* type_name(const bool*) { return "true or false"; }
const char* type_name(const std::int64_t*) { return "an integer"; }
const char* type_name(const double*) { return "a number"; }
const char* type_name(const std::string*) { return "a string"; }
const char* type_name(const Duration*) { return "a duration such as 500ms, 60s, 5m or 2h"; }
const char* type_name(const std::vector<std::int64_t>*) {
  return "a list of integers such as [256, 256]";
}
const char* type_name(const std::vector<std::string>*) { return "a list of strings such as [cpu]"; }
const char* type_name(const std::optional<std::int64_t>*) { return "an integer or null"; }
const char* type_name(const std::optional<double>*) { return "a number or null"; }
const char* type_name(const std::optional<Duration>*) {
  return "a duration such as 500ms, 60s, 5m or 2h, or null";
}

// What to write instead, where a common slip explains the mismatch; empty otherwise.
std::string hint(const Field& field, const YAML::Node& node) {
  if (!node.IsScalar()) return {};
  const std::string& text = node.Scalar();
  const bool number = core_number(text).has_value();
  if (is_quoted(node)) {
    return number || core_boolean(text) ? "; remove the quotes" : "";
  }
  if (std::holds_alternative<bool*>(field.target)) {
    return "; YAML 1.2 has only true and false";
  }
  if (is_duration(field) && number) return "; add a unit, for example " + text + "s";
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits += c;
  }
  if (digits.size() != text.size() && core_number(digits)) {
    return "; write " + digits + " without underscores";
  }
  return {};
}

std::string mismatch(const Field& field, const YAML::Node& node) {
  const std::string range = allowed_range(field);
  return "expects " + expected_type(field) + (range.empty() ? "" : " (" + range + ")") +
         ", found " + found_value(node) + hint(field, node);
}

std::string out_of_range(const Field& field, const std::string& value) {
  return "is " + value + "; allowed: " + allowed_range(field);
}

// Reads one scalar, or says what is wrong. Overloads by the field's type.
using Refusal = tl::unexpected<std::string>;
template <class T>
using Read = tl::expected<T, std::string>;

Read<bool> read(const Field& field, const YAML::Node& node, std::string_view, const bool*) {
  const auto value =
      node.IsScalar() && !is_quoted(node) ? core_boolean(node.Scalar()) : std::nullopt;
  if (!value) return Refusal(mismatch(field, node));
  return *value;
}

Read<std::int64_t> read(const Field& field, const YAML::Node& node, std::string_view,
                        const std::int64_t*) {
  if (!node.IsScalar() || is_quoted(node)) return Refusal(mismatch(field, node));
  const std::string& text = node.Scalar();
  if (const auto integer = core_integer(text)) {
    if (!integer->in_range) return Refusal("is " + text + ", more than 64 bits can hold");
    if (!within(static_cast<double>(integer->value), field.bounds)) {
      return Refusal(out_of_range(field, text));
    }
    return integer->value;
  }
  // 1e6 is the integer it looks like; 1.5e0 is not.
  const auto number = core_number(text);
  if (!number || std::isnan(*number)) return Refusal(mismatch(field, node));
  if (std::abs(*number) > 9007199254740992.0) {
    return Refusal("is " + text + ", too large to be exact; write all digits");
  }
  if (*number != std::trunc(*number)) return Refusal(mismatch(field, node));
  if (!within(*number, field.bounds)) return Refusal(out_of_range(field, text));
  return static_cast<std::int64_t>(*number);
}

Read<double> read(const Field& field, const YAML::Node& node, std::string_view, const double*) {
  const auto number =
      node.IsScalar() && !is_quoted(node) ? core_number(node.Scalar()) : std::nullopt;
  if (!number) return Refusal(mismatch(field, node));
  if (!std::isfinite(*number)) return Refusal("is " + node.Scalar() + ", which is not finite");
  if (!within(*number, field.bounds)) return Refusal(out_of_range(field, node.Scalar()));
  return *number;
}

Read<Duration> read(const Field& field, const YAML::Node& node, std::string_view, const Duration*) {
  const auto value = node.IsScalar() ? duration_from(node.Scalar()) : std::nullopt;
  if (!value) return Refusal(mismatch(field, node));
  if (!within(static_cast<double>(value->count()), field.bounds)) {
    return Refusal(out_of_range(field, node.Scalar()));
  }
  return *value;
}

Read<std::string> read(const Field& field, const YAML::Node& node, std::string_view source,
                       const std::string*) {
  std::string text;
  if (node.IsScalar()) {
    text = node.Scalar();
  } else if (!field.choices.empty() && is_word_null(node, source)) {
    text = "null";  // `job: null` names a choice
  } else {
    return Refusal(mismatch(field, node));
  }
  if (field.choices.empty()) return text;
  for (const std::string& choice : field.choices) {
    if (choice == text) return text;
  }
  const std::string nearest = nearest_name(text, field.choices);
  return Refusal("is \"" + text + "\"; allowed: " + joined(field.choices) +
                 (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

template <class T>
void assign_to(T& target, const Field& field, const YAML::Node& node, int line,
               std::string_view source, std::vector<Complaint>& complaints) {
  if constexpr (IsOptional<T>::value) {
    if (node.IsNull()) {
      target.reset();
      return;
    }
    typename T::value_type value{};
    const std::size_t before = complaints.size();
    assign_to(value, field, node, line, source, complaints);
    if (complaints.size() == before) target = value;
  } else if constexpr (IsVector<T>::value) {
    if (!node.IsSequence()) {
      complaints.push_back({line, mismatch(field, node)});
      return;
    }
    T values;
    const std::size_t before = complaints.size();
    for (const YAML::Node& element : node) {
      const int element_line = element.IsNull() ? line : element.Mark().line;
      if (has_own_tag(element)) {
        complaints.push_back({element_line, "may not be tagged " + element.Tag()});
        continue;
      }
      auto value = read(field, element, source, static_cast<typename T::value_type*>(nullptr));
      if (value) {
        values.push_back(std::move(*value));
      } else {
        complaints.push_back(
            {element_line, "element " + std::to_string(values.size() + 1) + " " + value.error()});
      }
    }
    if (complaints.size() == before) target = std::move(values);
  } else {
    auto value = read(field, node, source, &target);
    if (value) {
      target = std::move(*value);
    } else {
      complaints.push_back({line, value.error()});
    }
  }
}

}  // namespace

std::string expected_type(const Field& field) {
  if (!field.choices.empty()) return "one of " + joined(field.choices);
  return std::visit([](const auto* target) { return std::string(type_name(target)); },
                    field.target);
}

std::string allowed_range(const Field& field) {
  const Bounds& bounds = field.bounds;
  const bool low = std::isfinite(bounds.low), high = std::isfinite(bounds.high);
  const std::string low_text = low ? bound_text(field, bounds.low) : "";
  const std::string high_text = high ? bound_text(field, bounds.high) : "";
  if (low && high && !bounds.low_open && !bounds.high_open) return low_text + " to " + high_text;
  std::string text;
  if (low) text = (bounds.low_open ? "above " : "at least ") + low_text;
  if (high) {
    text += (text.empty() ? "" : " and ") + std::string(bounds.high_open ? "below " : "at most ") +
            high_text;
  }
  return text;
}

std::string found_value(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a mapping";
    case YAML::NodeType::Scalar:
      break;
    default:
      return "nothing (null)";
  }
  const std::string& text = node.Scalar();
  if (is_quoted(node)) return "the quoted string \"" + text + "\"";
  if (core_integer(text)) return "the integer " + text;
  if (core_number(text)) return "the number " + text;
  if (core_boolean(text)) return "the boolean " + text;
  return "the string \"" + text + "\"";
}

std::vector<Complaint> assign(const Field& field, const YAML::Node& node, int line,
                              std::string_view source) {
  std::vector<Complaint> complaints;
  if (has_own_tag(node)) {
    complaints.push_back(
        {line, "may not be tagged " + node.Tag() + "; its type is fixed: " + expected_type(field)});
    return complaints;
  }
  std::visit([&](auto* target) { assign_to(*target, field, node, line, source, complaints); },
             field.target);
  return complaints;
}

}  // namespace troupe::actors
