// The options section: a table's options and columns.
#include <optional>

#include "replay/checkpoint_parts.hpp"

namespace troupe::replay {
namespace {

using Bytes = std::vector<std::uint8_t>;

void put_columns(ByteWriter& out, const std::vector<Column>& columns) {
  out.put(static_cast<std::uint64_t>(columns.size()));
  for (const Column& column : columns) {
    out.text(column.name);
    out.put(static_cast<std::uint8_t>(column.dtype));
    out.array(std::span<const std::int64_t>(column.shape));
  }
}

// Compared, never kept: nothing is allocated from what the file says beyond its own bytes.
bool same_columns(ByteReader& in, const std::vector<Column>& columns) {
  bool same = in.take<std::uint64_t>() == columns.size();
  for (const Column& column : columns) {
    if (!same) break;
    Column read;
    in.text(read.name);
    same = in.take<std::uint8_t>() == static_cast<std::uint8_t>(column.dtype);
    read.dtype = column.dtype;
    in.array(read.shape);
    same = same && in.ok() && read == column;
  }
  return same;
}

// Nothing when the bytes describe no columns that a table could have.
std::optional<std::vector<Column>> take_columns(ByteReader& in) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 31;
  std::vector<Column> columns;
  for (auto count = in.take<std::uint64_t>(); count > 0 && in.ok(); --count) {
    Column& column = columns.emplace_back();
    in.text(column.name);
    const auto dtype = in.take<std::uint8_t>();
    column.dtype = static_cast<DType>(dtype);
    in.array(column.shape);
    std::int64_t elements = 1;
    for (const std::int64_t extent : column.shape) {
      if (extent < 1 || extent > kMostElements / elements) return std::nullopt;
      elements *= extent;
    }
    if (dtype > static_cast<std::uint8_t>(DType::kU64)) return std::nullopt;
  }
  if (!in.ok()) return std::nullopt;
  return columns;
}

void put_shape(ByteWriter& out, const ItemShape& shape) {
  out.put(static_cast<std::uint8_t>(shape.kind));
  out.put(shape.length);
  out.put(shape.period);
  out.put(shape.burn_in);
  out.put(static_cast<std::uint8_t>(shape.across_episodes));
  out.put(static_cast<std::uint8_t>(shape.tail));
}

ItemShape take_shape(ByteReader& in) {
  ItemShape shape;
  shape.kind = static_cast<ItemShape::Kind>(in.take<std::uint8_t>());
  in.get(shape.length);
  in.get(shape.period);
  in.get(shape.burn_in);
  shape.across_episodes = in.take<std::uint8_t>() != 0;
  shape.tail = static_cast<ItemShape::Tail>(in.take<std::uint8_t>());
  return shape;
}

}  // namespace

Bytes encode_options(const TableSnapshot& snapshot) {
  const TableOptions& options = snapshot.options;
  Bytes bytes;
  ByteWriter out(bytes);
  out.put(snapshot.signature.spec_hash);
  put_columns(out, snapshot.signature.observation);
  put_columns(out, snapshot.signature.step);
  out.array(std::span<const std::uint32_t>(snapshot.signature.frame_stack));
  out.put(options.capacity);
  out.put(options.limiter.min_size);
  out.put(options.limiter.samples_per_insert);
  out.put(options.limiter.error_buffer);
  out.put(options.n_step);
  out.put(options.discount);
  put_shape(out, options.items);
  out.text(options.selector);
  out.text(options.remover);
  out.put(options.shard);
  out.put(options.shard_epoch);
  out.put(options.seed);
  out.put(options.max_chunk_steps);
  out.put(options.priority_exponent);
  out.put(options.importance_exponent);
  out.put(static_cast<std::uint8_t>(options.weight_scale));
  out.put(options.max_times_sampled);
  out.put(options.capacity_bytes);
  out.put(static_cast<std::uint8_t>(options.limiter.kind));
  out.put(options.limiter.size);
  return bytes;
}

Result<void> decode_options(const SectionReader& file, const Bytes& bytes,
                            const Signature& signature, TableSnapshot& snapshot) {
  ByteReader in(bytes);
  TableOptions& options = snapshot.options;
  const auto spec_hash = in.take<std::uint64_t>();
  if (spec_hash != signature.spec_hash)
    return file.corrupt("was written for an environment with spec hash " +
                        std::to_string(spec_hash) + ", not " + std::to_string(signature.spec_hash));
  if (!same_columns(in, signature.observation) || !same_columns(in, signature.step))
    return file.corrupt("has other columns than the environment");
  std::vector<std::uint32_t> frame_stack;
  if (!in.array(frame_stack) || frame_stack != signature.frame_stack)
    return file.corrupt("was written with other frame stacks");
  in.get(options.capacity);
  in.get(options.limiter.min_size);
  in.get(options.limiter.samples_per_insert);
  in.get(options.limiter.error_buffer);
  in.get(options.n_step);
  in.get(options.discount);
  options.items = take_shape(in);
  in.text(options.selector);
  in.text(options.remover);
  in.get(options.shard);
  in.get(options.shard_epoch);
  in.get(options.seed);
  in.get(options.max_chunk_steps);
  in.get(options.priority_exponent);
  in.get(options.importance_exponent);
  options.weight_scale = static_cast<WeightScale>(in.take<std::uint8_t>());
  in.get(options.max_times_sampled);
  in.get(options.capacity_bytes);
  options.limiter.kind = static_cast<LimiterKind>(in.take<std::uint8_t>());
  in.get(options.limiter.size);
  if (!in.finished()) return file.corrupt("section 'options' is malformed");
  snapshot.signature = signature;
  return {};
}

std::optional<Signature> take_signature(const Bytes& bytes) {
  ByteReader in(bytes);
  Signature signature;
  in.get(signature.spec_hash);
  auto observation = take_columns(in), step = take_columns(in);
  if (!observation || !step || !in.array(signature.frame_stack)) return std::nullopt;
  signature.observation = std::move(*observation);
  signature.step = std::move(*step);
  return signature;
}

}  // namespace troupe::replay
