// Encodes parameter sets:
//   u32 magic, u32 version, u32 CRC-32C of all that follows,
//   u32 epoch, u64 version, u32 layers {u8 kind, u32 inputs, u32 outputs, f32 epsilon, text name},
//   u32 arrays {text name, u32 rank, i64 extents, f32 values}
#include "models/inference/parameter_set.hpp"

#include "models/inference/bytes.hpp"
#include "models/inference/checksum.hpp"

namespace troupe::models {
namespace {

constexpr std::uint32_t kMagic = 0x53505254;  // "TRPS"
constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kHeaderBytes = 12;
constexpr std::uint32_t kMaxRank = 8;

tl::unexpected<Error> corrupt(const std::string& what) {
  return fail(ErrorCode::kCorrupt, "The parameter set's bytes cannot be used: " + what + ".");
}

bool take_layer(ByteReader& reader, DenseLayer& layer) {
  std::uint8_t kind = 0;
  if (!reader.take(kind) || !reader.take(layer.inputs) || !reader.take(layer.outputs) ||
      !reader.take(layer.epsilon) || !reader.take(layer.name))
    return false;
  layer.kind = static_cast<DenseLayer::Kind>(kind);
  return kind <= static_cast<std::uint8_t>(DenseLayer::Kind::kRelu);
}

bool take_array(ByteReader& reader, std::string& name, ParameterArray& array) {
  std::uint32_t rank = 0;
  if (!reader.take(name) || !reader.take(rank) || rank > kMaxRank) return false;
  if (!reader.take_values(rank, array.shape)) return false;
  std::uint64_t elements = 1;
  for (const std::int64_t extent : array.shape) {
    // Nothing is multiplied that the remaining bytes could not hold.
    if (extent < 0 || static_cast<std::uint64_t>(extent) > reader.remaining()) return false;
    elements *= static_cast<std::uint64_t>(extent);
    if (elements > reader.remaining()) return false;
  }
  return reader.take_values(elements, array.values);
}

}  // namespace

std::vector<std::uint8_t> encode(const ParameterSet& set) {
  ByteWriter writer;
  writer.put(kMagic);
  writer.put(kFormat);
  writer.put(std::uint32_t{0});
  writer.put(set.learner_epoch);
  writer.put(set.version);
  writer.put(static_cast<std::uint32_t>(set.policy.size()));
  for (const DenseLayer& layer : set.policy) {
    writer.put(static_cast<std::uint8_t>(layer.kind));
    writer.put(layer.inputs);
    writer.put(layer.outputs);
    writer.put(layer.epsilon);
    writer.put(std::string_view(layer.name));
  }
  writer.put(static_cast<std::uint32_t>(set.arrays.size()));
  for (const auto& [name, array] : set.arrays) {
    writer.put(std::string_view(name));
    writer.put(static_cast<std::uint32_t>(array.shape.size()));
    writer.put_values(std::span<const std::int64_t>(array.shape));
    writer.put_values(std::span<const float>(array.values));
  }
  std::vector<std::uint8_t> bytes = std::move(writer.bytes());
  const std::uint32_t crc = checksum(std::span(bytes).subspan(kHeaderBytes));
  std::memcpy(bytes.data() + 8, &crc, sizeof crc);
  return bytes;
}

Result<ParameterSet> decode_parameter_set(std::span<const std::uint8_t> bytes) {
  ByteReader reader(bytes);
  std::uint32_t magic = 0, format = 0, crc = 0;
  if (!reader.take(magic) || !reader.take(format) || !reader.take(crc))
    return corrupt("they are too short for a header");
  if (magic != kMagic) return corrupt("they do not begin with the format's mark");
  if (format != kFormat)
    return corrupt("they are of format " + std::to_string(format) + ", this program reads " +
                   std::to_string(kFormat));
  if (checksum(bytes.subspan(kHeaderBytes)) != crc) return corrupt("the checksum does not match");

  ParameterSet set;
  std::uint32_t layers = 0, arrays = 0;
  if (!reader.take(set.learner_epoch) || !reader.take(set.version) || !reader.take(layers))
    return corrupt("they end early");
  for (std::uint32_t i = 0; i < layers; ++i)
    if (!take_layer(reader, set.policy.emplace_back()))
      return corrupt("layer " + std::to_string(i) + " is malformed");
  if (!reader.take(arrays)) return corrupt("they end early");
  for (std::uint32_t i = 0; i < arrays; ++i) {
    std::string name;
    ParameterArray array;
    if (!take_array(reader, name, array))
      return corrupt("array " + std::to_string(i) + " is malformed");
    if (!set.arrays.emplace(std::move(name), std::move(array)).second)
      return corrupt("array " + std::to_string(i) + " appears twice");
  }
  if (!reader.complete()) return corrupt("something follows the last array");
  return set;
}

}  // namespace troupe::models
