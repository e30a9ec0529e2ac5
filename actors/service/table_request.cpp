// Strict reading: what is not understood is an error, never ignored.
#include "actors/service/table_request.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "envs/spec/fnv.hpp"

namespace troupe::actors {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxName = 64, kMaxColumns = 64, kMaxRank = 8;

tl::unexpected<Error> invalid(const std::string& what) {
  return fail(ErrorCode::kInvalidArgument, "table request: " + what);
}

bool plain_name(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '/';
  };
  return !name.empty() && name.size() <= kMaxName && std::all_of(name.begin(), name.end(), plain);
}

constexpr std::array kTypes{DType::kF32, DType::kF64, DType::kU8, DType::kI32,
                            DType::kI64, DType::kU32, DType::kU64};

std::optional<DType> dtype_of(const std::string& name) {
  for (const DType type : kTypes)
    if (name == name_of(type)) return type;
  return std::nullopt;
}

// The key that is in `object` but not in `known`; empty when there is none.
std::string unknown_key(const Json& object, const std::set<std::string>& known) {
  for (const auto& [key, value] : object.items())
    if (!known.contains(key)) return key;
  return {};
}

Result<std::vector<std::int64_t>> read_shape(const Json& shape, const std::string& where,
                                             std::uint64_t max_row_bytes, std::uint64_t& bytes) {
  if (!shape.is_array() || shape.size() > kMaxRank)
    return invalid(where + ".shape is no list of at most " + std::to_string(kMaxRank) + " extents");
  std::vector<std::int64_t> extents;
  for (const Json& extent : shape) {
    if (!extent.is_number_integer() || extent.get<std::int64_t>() < 1 ||
        extent.get<std::uint64_t>() > max_row_bytes / bytes)
      return invalid(where + ".shape has an extent that is not in 1 to what makes " +
                     std::to_string(max_row_bytes) + " bytes a step");
    extents.push_back(extent.get<std::int64_t>());
    bytes *= extent.get<std::uint64_t>();
  }
  return extents;
}

Result<Column> read_column(const Json& entry, const std::string& where,
                           std::uint64_t max_row_bytes) {
  if (!entry.is_object()) return invalid(where + " is no object with name, dtype and shape");
  if (const std::string key = unknown_key(entry, {"name", "dtype", "shape"}); !key.empty())
    return invalid(where + " has the unknown key '" + key + "'");
  if (!entry.contains("name") || !entry["name"].is_string() ||
      !plain_name(entry["name"].get<std::string>()))
    return invalid(where + ".name is no name of 1 to " + std::to_string(kMaxName) +
                   " letters, digits and _-./");
  const auto type = entry.contains("dtype") && entry["dtype"].is_string()
                        ? dtype_of(entry["dtype"].get<std::string>())
                        : std::nullopt;
  if (!type) return invalid(where + ".dtype is none of f32, f64, u8, i32, i64, u32, u64");
  std::uint64_t bytes = size_of(*type);
  auto shape = read_shape(entry.value("shape", Json::array()), where, max_row_bytes, bytes);
  if (!shape) return tl::unexpected(shape.error());
  return Column{entry["name"].get<std::string>(), *type, *std::move(shape)};
}

Result<std::vector<Column>> read_columns(const Json& request, const std::string& key,
                                         std::uint64_t max_row_bytes) {
  const Json list = request.value(key, Json::array());
  if (!list.is_array() || list.size() > kMaxColumns)
    return invalid(key + " is no list of at most " + std::to_string(kMaxColumns) + " columns");
  std::vector<Column> columns;
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto column = read_column(list[i], key + "[" + std::to_string(i) + "]", max_row_bytes);
    if (!column) return tl::unexpected(column.error());
    columns.push_back(*std::move(column));
  }
  return columns;
}

// One entry an option: how it is read and how it is written.
struct Option {
  std::function<bool(const Json&, replay::TableOptions&)> read;
  std::function<Json(const replay::TableOptions&)> write;
};

template <class T>
bool assign(const Json& value, T& target) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) return false;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) return false;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!value.is_number()) return false;
  } else {
    if (!value.is_number_integer()) return false;
    if (std::is_unsigned_v<T> && !value.is_number_unsigned()) return false;
    if (value.is_number_unsigned() &&
        value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
      return false;
  }
  target = value.get<T>();
  return true;
}

template <class Access>
Option option(Access access) {
  return {[access](const Json& value, replay::TableOptions& options) {
            return assign(value, access(options));
          },
          [access](const replay::TableOptions& options) {
            auto copy = options;
            return Json(access(copy));
          }};
}

// The values of an option that is one of several words, in the order of its enumeration.
template <std::size_t N, class Access>
Option choice(std::array<const char*, N> words, Access access) {
  return {[words, access](const Json& value, replay::TableOptions& options) {
            const auto found = value.is_string()
                                   ? std::find(words.begin(), words.end(), value.get<std::string>())
                                   : words.end();
            if (found == words.end()) return false;
            auto& field = access(options);
            field = static_cast<std::remove_reference_t<decltype(field)>>(found - words.begin());
            return true;
          },
          [words, access](const replay::TableOptions& options) {
            auto copy = options;
            return Json(words[static_cast<std::size_t>(access(copy))]);
          }};
}

constexpr const char* kLimiter = "limiter";
constexpr const char* kFrameStack = "frame_stack";

// {"column": "zstd"}.
Option compression_option() {
  return {[](const Json& value, replay::TableOptions& options) {
            if (!value.is_object()) return false;
            for (const auto& [column, name] : value.items()) {
              const auto compression =
                  name.is_string() ? replay::compression_of(name.get<std::string>()) : std::nullopt;
              if (!compression) return false;
              options.compression[column] = *compression;
            }
            return true;
          },
          [](const replay::TableOptions& options) {
            Json object = Json::object();
            for (const auto& [column, compression] : options.compression)
              object[column] = name_of(compression);
            return object;
          }};
}

// One line an option: this is the whole list of what a client or a file may set.
const std::map<std::string, Option>& known_options() {
  using Options = replay::TableOptions;
  static const std::map<std::string, Option> known{
      {"capacity", option([](Options & o) -> auto& { return o.capacity; })},
      {"n_step", option([](Options & o) -> auto& { return o.n_step; })},
      {"discount", option([](Options & o) -> auto& { return o.discount; })},
      {"selector", option([](Options & o) -> auto& { return o.selector; })},
      {"remover", option([](Options & o) -> auto& { return o.remover; })},
      {"seed", option([](Options & o) -> auto& { return o.seed; })},
      {kLimiter,
       choice<3>(
           {"ratio", "queue", "stack"}, [](Options & o) -> auto& { return o.limiter.kind; })},
      {"items",
       choice<3>(
           {"n_step", "sequence", "episode"}, [](Options & o) -> auto& { return o.items.kind; })},
      {"length", option([](Options & o) -> auto& { return o.items.length; })},
      {"period", option([](Options & o) -> auto& { return o.items.period; })},
      {"burn_in", option([](Options & o) -> auto& { return o.items.burn_in; })},
      {"across_episodes", option([](Options & o) -> auto& { return o.items.across_episodes; })},
      {"tail", choice<2>(
                   {"pad", "drop"}, [](Options & o) -> auto& { return o.items.tail; })},
      {"priority_exponent", option([](Options & o) -> auto& { return o.priority_exponent; })},
      {"importance_exponent", option([](Options & o) -> auto& { return o.importance_exponent; })},
      {"max_times_sampled", option([](Options & o) -> auto& { return o.max_times_sampled; })},
      {"capacity_bytes", option([](Options & o) -> auto& { return o.capacity_bytes; })},
      {"compression", compression_option()},
      {"max_chunk_steps", option([](Options & o) -> auto& { return o.max_chunk_steps; })},
      {"min_size", option([](Options & o) -> auto& { return o.limiter.min_size; })},
      {"samples_per_insert",
       option([](Options & o) -> auto& { return o.limiter.samples_per_insert; })},
      {"error_buffer", option([](Options & o) -> auto& { return o.limiter.error_buffer; })},
  };
  return known;
}

Result<void> read_option(const std::string& key, const Json& value, replay::TableOptions& options) {
  const auto found = known_options().find(key);
  if (found == known_options().end()) return invalid("options has the unknown key '" + key + "'");
  if (!found->second.read(value, options))
    return invalid("options." + key + " has a value of the wrong type or out of range");
  return {};
}

// {"column": rows}, of observation columns.
Result<void> read_frame_stack(const Json& object, replay::Signature& signature) {
  if (!object.is_object()) return invalid("options.frame_stack is no object");
  signature.frame_stack.assign(signature.observation.size(), 1);
  for (const auto& [name, rows] : object.items()) {
    const auto column =
        std::find_if(signature.observation.begin(), signature.observation.end(),
                     [&name = name](const Column& one) { return one.name == name; });
    if (column == signature.observation.end())
      return invalid("options.frame_stack names no observation column with '" + name + "'");
    if (!assign(rows,
                signature
                    .frame_stack[static_cast<std::size_t>(column - signature.observation.begin())]))
      return invalid("options.frame_stack." + name + " is no number of rows");
  }
  if (signature.lead() == 0 &&
      std::count(signature.frame_stack.begin(), signature.frame_stack.end(), 0U) == 0)
    signature.frame_stack.clear();  // as if it were not there
  return {};
}

// The limiter comes first: of a queue or stack, other options have other defaults, and `capacity`
// is its size. What contradicts it is found when the table is made.
Result<void> read_options(const Json& object, replay::TableOptions& options,
                          replay::Signature& signature) {
  if (!object.is_object()) return invalid("options is no object");
  if (object.contains(kLimiter))
    if (auto good = read_option(kLimiter, object[kLimiter], options); !good) return good;
  const replay::LimiterKind kind = options.limiter.kind;
  if (kind == replay::LimiterKind::kQueue) options = queue_options(options, options.capacity);
  if (kind == replay::LimiterKind::kStack) options = stack_options(options, options.capacity);
  for (const auto& [key, value] : object.items())
    if (auto good = key == kFrameStack ? read_frame_stack(value, signature)
                                       : read_option(key, value, options);
        !good)
      return good;
  if (!options.limiter.is_ratio()) options.limiter.size = options.capacity;
  return {};
}

Result<void> check_columns(const replay::Signature& signature, bool spans,
                           std::uint64_t max_row_bytes) {
  std::set<std::string> names{"reward", "discount", "weight"};
  if (spans) names.insert({"mask", "first"});
  if (signature.observation.empty()) return invalid("observation names no column");
  for (const Column& column : signature.observation)
    if (!names.insert(column.name).second || !names.insert("next_" + column.name).second)
      return invalid("a batch would have two columns '" + column.name + "' or 'next_" +
                     column.name + "'");
  for (const Column& column : signature.step)
    if (!names.insert(column.name).second)
      return invalid("a batch would have two columns '" + column.name + "'");
  if (const std::uint64_t bytes = step_bytes(signature); bytes > max_row_bytes)
    return invalid("a step has " + std::to_string(bytes) + " bytes, more than " +
                   std::to_string(max_row_bytes));
  return {};
}

// Over the columns, so that a chunk made for others is refused.
std::uint64_t hash_of_columns(const replay::Signature& signature) {
  const std::string text = columns_json(signature.observation).dump() +
                           columns_json(signature.step).dump() +
                           (signature.lead() > 0 ? Json(signature.frame_stack).dump() : "");
  Fnv1a hash;
  hash.bytes(text.data(), text.size());
  return hash.value();
}

}  // namespace

std::uint64_t step_bytes(const replay::Signature& signature) {
  std::uint64_t bytes = sizeof(float);
  for (const Column& column : signature.observation) bytes += column.bytes();
  for (const Column& column : signature.step) bytes += column.bytes();
  return bytes;
}

nlohmann::json columns_json(const std::vector<Column>& columns) {
  Json list = Json::array();
  for (const Column& column : columns)
    list.push_back(
        {{"name", column.name}, {"dtype", name_of(column.dtype)}, {"shape", column.shape}});
  return list;
}

nlohmann::json options_json(const replay::TableOptions& options) {
  Json object = Json::object();
  for (const auto& [key, entry] : known_options()) object[key] = entry.write(options);
  return object;
}

Result<TableRequest> read_table_request(const nlohmann::json& request,
                                        std::uint64_t max_row_bytes) {
  if (!request.is_object()) return invalid("it is no JSON object");
  if (const auto key = unknown_key(request, {"name", "observation", "step", "options"});
      !key.empty())
    return invalid("unknown key '" + key + "'");
  TableRequest result;
  if (!request.contains("name") || !request["name"].is_string())
    return invalid("name is missing or no text");
  result.name = request["name"].get<std::string>();
  if (!plain_name(result.name) || result.name.front() == '.' ||
      result.name.find('/') != std::string::npos)
    return invalid("name is not 1 to " + std::to_string(kMaxName) +
                   " letters, digits and _-. that begin with no dot");
  result.declares = request.contains("observation");
  if (!result.declares) {
    if (request.contains("step") || request.contains("options"))
      return invalid("'" + result.name + "' has step columns or options but no observation");
    return result;
  }
  auto observation = read_columns(request, "observation", max_row_bytes);
  if (!observation) return tl::unexpected(observation.error());
  auto step = read_columns(request, "step", max_row_bytes);
  if (!step) return tl::unexpected(step.error());
  result.signature = {*std::move(observation), *std::move(step), 0};
  if (auto good =
          read_options(request.value("options", Json::object()), result.options, result.signature);
      !good)
    return tl::unexpected(good.error());
  const bool spans = result.options.shape().is_span();
  if (auto good = check_columns(result.signature, spans, max_row_bytes); !good)
    return tl::unexpected(good.error());
  result.signature.spec_hash = hash_of_columns(result.signature);
  return result;
}

}  // namespace troupe::actors
