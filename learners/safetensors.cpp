// Implements the safetensors format.
#include "learners/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace troupe::learners {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kLengthBytes = 8;

// In the order of DType's codes.
constexpr std::array<std::string_view, 7> kNames = {"F32", "F64", "U8", "I32", "I64", "U32", "U64"};

std::optional<DType> dtype_of(const Json& name) {
  if (!name.is_string()) return std::nullopt;
  const auto found = std::find(kNames.begin(), kNames.end(), name.get_ref<const std::string&>());
  if (found == kNames.end()) return std::nullopt;
  return static_cast<DType>(found - kNames.begin());
}

struct Entry {
  TensorBytes tensor;
  std::uint64_t begin = 0, end = 0;
};

// Empty unless type, shape and place are there and agree with each other and with `size` bytes of
// data.
std::optional<Entry> entry_of(const Json& json, std::uint64_t size) {
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets"))
    return std::nullopt;
  const std::optional<DType> dtype = dtype_of(json["dtype"]);
  const Json &shape = json["shape"], &place = json["data_offsets"];
  if (!dtype || !shape.is_array() || !place.is_array() || place.size() != 2 ||
      !place[0].is_number_unsigned() || !place[1].is_number_unsigned())
    return std::nullopt;
  Entry entry;
  entry.tensor.dtype = *dtype;
  entry.begin = place[0].get<std::uint64_t>();
  entry.end = place[1].get<std::uint64_t>();
  if (entry.begin > entry.end || entry.end > size) return std::nullopt;
  std::uint64_t bytes = size_of(*dtype);
  for (const Json& extent : shape) {
    if (!extent.is_number_unsigned()) return std::nullopt;
    const auto value = extent.get<std::uint64_t>();
    if (value > size && bytes != 0) return std::nullopt;
    bytes *= value;
    if (bytes > size) return std::nullopt;
    entry.tensor.shape.push_back(static_cast<std::int64_t>(value));
  }
  if (bytes != entry.end - entry.begin) return std::nullopt;
  return entry;
}

tl::unexpected<Error> corrupt(const std::string& name, const std::string& what) {
  return fail(ErrorCode::kCorrupt, name + " is not a usable safetensors file: " + what + ".");
}

}  // namespace

std::vector<std::uint8_t> encode_safetensors(const std::map<std::string, TensorBytes>& tensors) {
  Json header = Json::object();
  std::uint64_t size = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", kNames.at(static_cast<std::size_t>(tensor.dtype))},
                    {"shape", tensor.shape},
                    {"data_offsets", {size, size + tensor.bytes.size()}}};
    size += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data begins aligned

  std::vector<std::uint8_t> bytes(kLengthBytes);
  const std::uint64_t length = text.size();
  std::memcpy(bytes.data(), &length, kLengthBytes);
  bytes.reserve(kLengthBytes + text.size() + size);
  bytes.insert(bytes.end(), text.begin(), text.end());
  for (const auto& [name, tensor] : tensors)
    bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  return bytes;
}

Result<SafeTensors> SafeTensors::decode(std::vector<std::uint8_t> bytes, const std::string& name) {
  if (bytes.size() < kLengthBytes) return corrupt(name, "it is too short");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > bytes.size() - kLengthBytes) return corrupt(name, "it ends inside its header");

  SafeTensors result;
  result.name_ = name;
  result.bytes_ = std::move(bytes);
  const std::span<const std::uint8_t> all(result.bytes_);
  const auto text = all.subspan(kLengthBytes, length), data = all.subspan(kLengthBytes + length);
  const Json header = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!header.is_object()) return corrupt(name, "its header is not a JSON object");

  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  for (const auto& [key, value] : header.items()) {
    if (key == "__metadata__") continue;
    std::optional<Entry> entry = entry_of(value, data.size());
    if (!entry) return corrupt(name, "array '" + key + "' is described wrongly");
    entry->tensor.bytes = data.subspan(entry->begin, entry->end - entry->begin);
    places.emplace_back(entry->begin, entry->end);
    result.tensors_.emplace(key, std::move(entry->tensor));
  }
  std::sort(places.begin(), places.end());
  std::uint64_t end = 0;
  for (const auto& [from, to] : places) {
    if (from != end) return corrupt(name, "its arrays overlap or leave gaps");
    end = to;
  }
  if (end != data.size()) return corrupt(name, "its length does not fit its header");
  return result;
}

Result<void> SafeTensors::copy(const std::string& tensor, const std::vector<std::int64_t>& shape,
                               std::span<float> values) const {
  return copy_bytes(tensor, DType::kF32, shape,
                    {reinterpret_cast<std::uint8_t*>(values.data()), values.size_bytes()});
}

Result<void> SafeTensors::copy(const std::string& tensor, const std::vector<std::int64_t>& shape,
                               std::span<double> values) const {
  return copy_bytes(tensor, DType::kF64, shape,
                    {reinterpret_cast<std::uint8_t*>(values.data()), values.size_bytes()});
}

Result<void> SafeTensors::copy_bytes(const std::string& tensor, DType dtype,
                                     const std::vector<std::int64_t>& shape,
                                     std::span<std::uint8_t> values) const {
  const auto found = tensors_.find(tensor);
  if (found == tensors_.end()) return corrupt(name_, "array '" + tensor + "' is missing");
  const TensorBytes& stored = found->second;
  if (stored.dtype != dtype || stored.shape != shape || stored.bytes.size() != values.size())
    return corrupt(name_, "array '" + tensor + "' has another type or shape than expected");
  std::copy(stored.bytes.begin(), stored.bytes.end(), values.begin());
  return {};
}

}  // namespace troupe::learners
