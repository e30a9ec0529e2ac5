// See npz.hpp. Pure functions; little-endian hosts only, as the rest of Troupe.
#include "actors/telemetry/npz.hpp"

#include <zlib.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>

namespace troupe::actors::telemetry {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr std::size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22;
constexpr std::uint16_t kZipVersion = 20, kEpochDate = 0x21;  // 1980-01-01: files compare equal
constexpr std::string_view kNpyMagic("\x93NUMPY\x01\x00", 8);
constexpr std::size_t kNpyAlignment = 64;

template <class Integer>
void put(std::string& bytes, Integer value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// The caller has checked that `offset` + size is inside.
template <class Integer>
Integer get(std::string_view bytes, std::size_t offset) {
  Integer value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::uint32_t checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Number of values of a shape; nullopt for a negative extent or overflow.
std::optional<std::size_t> count(const std::vector<std::int64_t>& shape) {
  std::size_t product = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (__builtin_mul_overflow(product, static_cast<std::size_t>(extent), &product)) {
      return std::nullopt;
    }
  }
  return product;
}

std::string encode_npy(const NpyArray& array) {
  std::string shape;
  for (const std::int64_t extent : array.shape) shape += std::to_string(extent) + ",";
  const bool is_real = std::holds_alternative<std::vector<double>>(array.values);
  std::string header = std::string("{'descr': '") + (is_real ? "<f8" : "<i8") +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const std::size_t unpadded = kNpyMagic.size() + 2 + header.size() + 1;
  header.append((kNpyAlignment - unpadded % kNpyAlignment) % kNpyAlignment, ' ');
  header += '\n';
  std::string bytes(kNpyMagic);
  put(bytes, static_cast<std::uint16_t>(header.size()));
  bytes += header;
  std::visit(
      [&bytes](const auto& values) {
        bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * 8);
      },
      array.values);
  return bytes;
}

// Fields that the local and the central header share, from "version needed" to "extra length".
void put_common(std::string& bytes, const std::string& name, std::string_view content) {
  put(bytes, kZipVersion);
  put<std::uint16_t>(bytes, 0);  // flags
  put<std::uint16_t>(bytes, 0);  // stored
  put<std::uint16_t>(bytes, 0);  // time
  put(bytes, kEpochDate);
  put(bytes, checksum(content));
  put(bytes, static_cast<std::uint32_t>(content.size()));
  put(bytes, static_cast<std::uint32_t>(content.size()));
  put(bytes, static_cast<std::uint16_t>(name.size()));
  put<std::uint16_t>(bytes, 0);  // extra length
}

tl::unexpected<Error> corrupt(const std::string& what) { return fail(ErrorCode::kCorrupt, what); }

// Text between `key` and the first of `ends` in an .npy header.
std::string_view field(std::string_view header, std::string_view key, char end) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = header.substr(at + key.size());
  return rest.substr(0, rest.find(end));
}

Result<std::vector<std::int64_t>> parse_shape(std::string_view text) {
  std::vector<std::int64_t> shape;
  while (!text.empty()) {
    if (text.front() == ',' || text.front() == ' ') {
      text.remove_prefix(1);
      continue;
    }
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc()) return corrupt("an array's shape is not a list of numbers");
    shape.push_back(extent);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return shape;
}

Result<NpyArray> decode_npy(std::string_view bytes) {
  if (bytes.size() < kNpyMagic.size() + 2 || !bytes.starts_with(kNpyMagic)) {
    return corrupt("a member is not a version 1.0 .npy array");
  }
  const std::size_t start = kNpyMagic.size() + 2;
  const std::size_t length = get<std::uint16_t>(bytes, kNpyMagic.size());
  if (bytes.size() - start < length) return corrupt("an array's header is cut off");
  const std::string_view header = bytes.substr(start, length);
  const std::string_view data = bytes.substr(start + length);
  if (header.find("'fortran_order': False") == std::string_view::npos) {
    return corrupt("an array is not in C order");
  }
  auto shape = parse_shape(field(header, "'shape': (", ')'));
  if (!shape) return tl::unexpected(shape.error());
  const auto values = count(*shape);
  if (!values || data.size() % 8 != 0 || data.size() / 8 != *values) {
    return corrupt("an array's size does not match its shape");
  }
  const std::string_view type = field(header, "'descr': '", '\'');
  const auto fill = [&](auto array) {
    array.resize(*values);
    if (!data.empty()) std::memcpy(array.data(), data.data(), data.size());
    return NpyArray{std::move(*shape), std::move(array)};
  };
  if (type == "<f8") return fill(std::vector<double>());
  if (type == "<i8") return fill(std::vector<std::int64_t>());
  return corrupt("an array's type is neither <f8 nor <i8");
}

// The content of the member whose central header is at `offset`.
Result<std::string_view> member(std::string_view bytes, std::size_t central) {
  const std::size_t local = get<std::uint32_t>(bytes, central + 42);
  const std::size_t size = get<std::uint32_t>(bytes, central + 24);
  if (get<std::uint16_t>(bytes, central + 10) != 0) return corrupt("a member is compressed");
  if (bytes.size() < kLocalSize || local > bytes.size() - kLocalSize ||
      get<std::uint32_t>(bytes, local) != kLocalHeader) {
    return corrupt("a member's header is missing");
  }
  const std::size_t start = local + kLocalSize + get<std::uint16_t>(bytes, local + 26) +
                            get<std::uint16_t>(bytes, local + 28);
  if (start > bytes.size() || size > bytes.size() - start) return corrupt("a member is cut off");
  const std::string_view content = bytes.substr(start, size);
  if (checksum(content) != get<std::uint32_t>(bytes, central + 16)) {
    return corrupt("a member's checksum is wrong");
  }
  return content;
}

}  // namespace

Result<std::string> encode_npz(const NpzArrays& arrays) {
  std::string bytes, directory;
  for (const auto& [name, array] : arrays) {
    const std::size_t values = std::visit([](const auto& v) { return v.size(); }, array.values);
    if (count(array.shape) != values) {
      return fail(ErrorCode::kInvalidArgument, "array '" + name +
                                                   "' does not have as many values as "
                                                   "its shape says");
    }
    const std::string file = name + ".npy";
    const std::string content = encode_npy(array);
    if (bytes.size() + content.size() > std::numeric_limits<std::uint32_t>::max() / 2) {
      return fail(ErrorCode::kInvalidArgument, "array '" + name + "' makes the archive too large");
    }
    const auto offset = static_cast<std::uint32_t>(bytes.size());
    put(bytes, kLocalHeader);
    put_common(bytes, file, content);
    bytes += file + content;

    put(directory, kCentralHeader);
    put(directory, kZipVersion);  // made by
    put_common(directory, file, content);
    put<std::uint16_t>(directory, 0);  // comment length
    put<std::uint16_t>(directory, 0);  // disk
    put<std::uint16_t>(directory, 0);  // internal attributes
    put<std::uint32_t>(directory, 0);  // external attributes
    put(directory, offset);
    directory += file;
  }
  const auto start = static_cast<std::uint32_t>(bytes.size());
  bytes += directory;
  put(bytes, kEnd);
  put<std::uint32_t>(bytes, 0);  // this disk, the directory's disk
  put(bytes, static_cast<std::uint16_t>(arrays.size()));
  put(bytes, static_cast<std::uint16_t>(arrays.size()));
  put(bytes, static_cast<std::uint32_t>(directory.size()));
  put(bytes, start);
  put<std::uint16_t>(bytes, 0);  // comment length
  return bytes;
}

Result<NpzArrays> decode_npz(std::string_view bytes) {
  if (bytes.size() < kEndSize || get<std::uint32_t>(bytes, bytes.size() - kEndSize) != kEnd) {
    return corrupt("it does not end like a ZIP archive");
  }
  const std::size_t end = bytes.size() - kEndSize;
  std::size_t at = get<std::uint32_t>(bytes, end + 16);
  NpzArrays arrays;
  for (int left = get<std::uint16_t>(bytes, end + 10); left > 0; --left) {
    if (at > end || end - at < kCentralSize || get<std::uint32_t>(bytes, at) != kCentralHeader) {
      return corrupt("its directory is damaged");
    }
    const std::size_t name_size = get<std::uint16_t>(bytes, at + 28);
    const std::size_t next = at + kCentralSize + name_size + get<std::uint16_t>(bytes, at + 30) +
                             get<std::uint16_t>(bytes, at + 32);
    if (next > end) return corrupt("its directory is damaged");
    std::string name(bytes.substr(at + kCentralSize, name_size));
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    auto content = member(bytes, at);
    if (!content) return tl::unexpected(content.error());
    auto array = decode_npy(*content);
    if (!array) return tl::unexpected(array.error());
    arrays.emplace_back(std::move(name), std::move(*array));
    at = next;
  }
  return arrays;
}

}  // namespace troupe::actors::telemetry
