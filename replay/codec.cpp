// The chunk format of codec.hpp, version 1.
#include "replay/codec.hpp"

#include <limits>
#include <string>

#include "replay/bytes.hpp"
#include "replay/checksum.hpp"

namespace troupe::replay {
namespace {

constexpr std::uint32_t kMagic = 0x4b435254;  // "TRCK"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kPreamble = 24;  // magic to spec hash
constexpr std::size_t kHeader = 49;    // worker to learner_epoch
constexpr std::size_t kChecksum = 4;

std::string text(std::uint64_t value) { return std::to_string(value); }

void put_columns(ByteWriter& out, const std::vector<Column>& columns, std::uint64_t rows) {
  for (const Column& column : columns) {
    out.put(static_cast<std::uint8_t>(column.name.size()));
    out.bytes(column.name.data(), column.name.size());
    out.put(static_cast<std::uint8_t>(column.dtype));
    out.put(static_cast<std::uint8_t>(column.shape.size()));
    for (const std::int64_t extent : column.shape) out.put(extent);
    out.put(rows);
  }
}

// Reads one column description and compares it with what the signature says.
Result<void> expect_column(ByteReader& in, const Column& column, std::uint64_t rows) {
  const auto name = in.view(in.take<std::uint8_t>());
  const auto dtype = in.take<std::uint8_t>();
  const auto rank = in.take<std::uint8_t>();
  bool same = std::string(name.begin(), name.end()) == column.name &&
              dtype == static_cast<std::uint8_t>(column.dtype) && rank == column.shape.size();
  for (int i = 0; i < rank; ++i) {
    const auto extent = in.take<std::int64_t>();
    same = same && extent == column.shape[static_cast<std::size_t>(i)];
  }
  if (!in.ok()) return fail(ErrorCode::kCorrupt, "chunk ends inside its column descriptions");
  if (!same)
    return fail(ErrorCode::kCorrupt, "chunk's column '" + std::string(name.begin(), name.end()) +
                                         "' is not the expected '" + column.name + "' (" +
                                         name_of(column.dtype) + ", " + text(column.bytes()) +
                                         " bytes a row)");
  if (const auto found = in.take<std::uint64_t>(); found != rows)
    return fail(ErrorCode::kCorrupt, "chunk's column '" + column.name + "' has " + text(found) +
                                         " rows instead of " + text(rows));
  return {};
}

Result<void> check_preamble(std::span<const std::uint8_t> bytes, const Signature& signature,
                            const DecodeLimits& limits) {
  if (bytes.size() > limits.max_bytes)
    return fail(ErrorCode::kCorrupt, "chunk of " + text(bytes.size()) +
                                         " bytes exceeds the limit of " + text(limits.max_bytes));
  ByteReader in(bytes);
  const auto magic = in.take<std::uint32_t>();
  const auto version = in.take<std::uint32_t>();
  const auto size = in.take<std::uint64_t>();
  const auto spec_hash = in.take<std::uint64_t>();
  if (!in.ok())
    return fail(ErrorCode::kCorrupt, "chunk of " + text(bytes.size()) + " bytes has no header");
  if (magic != kMagic) return fail(ErrorCode::kCorrupt, "bytes are not a chunk (wrong magic)");
  if (version != kVersion)
    return fail(ErrorCode::kCorrupt, "chunk has format version " + text(version) +
                                         "; this program reads version " + text(kVersion));
  if (size != bytes.size() || size < kPreamble + kChecksum)
    return fail(ErrorCode::kCorrupt,
                "chunk says " + text(size) + " bytes but has " + text(bytes.size()));
  if (spec_hash != signature.spec_hash)
    return fail(ErrorCode::kCorrupt, "chunk was made for an environment with spec hash " +
                                         text(spec_hash) + ", not " + text(signature.spec_hash));
  ByteReader tail(bytes.last(kChecksum));
  const auto checked = bytes.first(bytes.size() - kChecksum);
  const bool zlib = limits.checksum == ChunkChecksum::kCrc32;
  if (tail.take<std::uint32_t>() != (zlib ? crc32(checked) : crc32c(checked)))
    return fail(ErrorCode::kCorrupt, "chunk's checksum does not match its bytes");
  return {};
}

std::uint64_t payload_bytes(const ChunkHeader& header, const Signature& signature) {
  std::uint64_t total = std::uint64_t{header.steps} * sizeof(float);
  for (const Column& column : signature.observation)
    total += column.bytes() * std::uint64_t{header.observation_rows()};
  for (const Column& column : signature.step) total += column.bytes() * std::uint64_t{header.steps};
  return total;
}

void take_columns(ByteReader& in, const std::vector<Column>& columns, std::uint64_t rows,
                  std::vector<std::vector<std::uint8_t>>& out) {
  out.reserve(columns.size());
  for (const Column& column : columns) {
    const auto data = in.view(column.bytes() * rows);
    out.emplace_back(data.begin(), data.end());
  }
}

Result<void> check_columns(const Chunk& chunk, const std::vector<Column>& columns,
                           const std::vector<std::vector<std::uint8_t>>& data, std::uint64_t rows) {
  if (data.size() != columns.size())
    return fail(ErrorCode::kInvalidArgument, describe(chunk.header) + " has " + text(data.size()) +
                                                 " columns instead of " + text(columns.size()));
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (data[i].size() != rows * columns[i].bytes())
      return fail(ErrorCode::kInvalidArgument, describe(chunk.header) + " has " +
                                                   text(data[i].size()) + " bytes in column '" +
                                                   columns[i].name + "' instead of " + text(rows) +
                                                   " rows of " + text(columns[i].bytes()));
  return {};
}

}  // namespace

void put_chunk_header(ByteWriter& out, const ChunkHeader& header) {
  out.put(header.worker);
  out.put(header.incarnation);
  out.put(header.sequence);
  out.put(header.environment);
  out.put(header.episode);
  out.put(header.first_step);
  out.put(header.steps);
  out.put(static_cast<std::uint8_t>(header.end));
  out.put(header.parameter_version);
  out.put(header.learner_epoch);
}

bool get_chunk_header(ByteReader& in, ChunkHeader& header) {
  in.get(header.worker);
  in.get(header.incarnation);
  in.get(header.sequence);
  in.get(header.environment);
  in.get(header.episode);
  in.get(header.first_step);
  in.get(header.steps);
  const auto end = in.take<std::uint8_t>();
  header.end = static_cast<EpisodeEnd>(end);
  in.get(header.parameter_version);
  in.get(header.learner_epoch);
  return in.ok() && end <= static_cast<std::uint8_t>(EpisodeEnd::kTruncated);
}

std::string describe(const ChunkHeader& header) {
  return "chunk " + text(header.sequence) + " of worker " + text(header.worker) + ", incarnation " +
         text(header.incarnation) + ", environment " + text(header.environment) + ", episode " +
         text(header.episode) + ", steps " + text(header.first_step) + "-" +
         text(std::uint64_t{header.first_step} + header.steps - 1);
}

std::uint64_t encoded_bytes(const ChunkHeader& header, const Signature& signature) {
  std::uint64_t total = kPreamble + kHeader + 4 + payload_bytes(header, signature) + kChecksum;
  for (const auto* columns : {&signature.observation, &signature.step})
    for (const Column& column : *columns)
      total += 11 + column.name.size() + 8 * column.shape.size();
  return total;
}

std::vector<std::uint8_t> encode(const Chunk& chunk, const Signature& signature) {
  std::vector<std::uint8_t> bytes;
  const std::uint64_t size = encoded_bytes(chunk.header, signature);
  bytes.reserve(size);
  ByteWriter out(bytes);
  out.put(kMagic);
  out.put(kVersion);
  out.put(size);
  out.put(chunk.header.spec_hash);
  put_chunk_header(out, chunk.header);
  out.put(static_cast<std::uint16_t>(signature.observation.size()));
  out.put(static_cast<std::uint16_t>(signature.step.size()));
  put_columns(out, signature.observation, chunk.header.observation_rows());
  put_columns(out, signature.step, chunk.header.steps);
  for (const auto& column : chunk.observation) out.bytes(column.data(), column.size());
  for (const auto& column : chunk.step) out.bytes(column.data(), column.size());
  out.bytes(chunk.reward.data(), chunk.reward.size() * sizeof(float));
  out.put(crc32c(bytes));
  return bytes;
}

Result<ChunkPtr> decode(std::span<const std::uint8_t> bytes, const Signature& signature,
                        const DecodeLimits& limits) {
  if (auto checked = check_preamble(bytes, signature, limits); !checked)
    return tl::unexpected(checked.error());
  ByteReader in(bytes.subspan(kPreamble, bytes.size() - kPreamble - kChecksum));
  auto chunk = std::make_shared<Chunk>();
  ChunkHeader& header = chunk->header;
  header.spec_hash = signature.spec_hash;
  if (!get_chunk_header(in, header))
    return fail(ErrorCode::kCorrupt, "chunk's header is malformed");
  if (header.steps == 0 || header.steps > limits.max_steps)
    return fail(ErrorCode::kCorrupt, "chunk has " + text(header.steps) + " steps; 1 to " +
                                         text(limits.max_steps) + " are allowed");
  if (header.steps > std::numeric_limits<std::uint32_t>::max() - header.first_step)
    return fail(ErrorCode::kCorrupt, "chunk's step numbers exceed 32 bits");
  if (in.take<std::uint16_t>() != signature.observation.size() ||
      in.take<std::uint16_t>() != signature.step.size())
    return fail(ErrorCode::kCorrupt, "chunk has another number of columns than its spec");
  for (const Column& column : signature.observation)
    if (auto same = expect_column(in, column, header.observation_rows()); !same)
      return tl::unexpected(same.error());
  for (const Column& column : signature.step)
    if (auto same = expect_column(in, column, header.steps); !same)
      return tl::unexpected(same.error());
  if (in.remaining() != payload_bytes(header, signature))
    return fail(ErrorCode::kCorrupt, "chunk holds " + text(in.remaining()) +
                                         " bytes of data instead of " +
                                         text(payload_bytes(header, signature)));
  take_columns(in, signature.observation, header.observation_rows(), chunk->observation);
  take_columns(in, signature.step, header.steps, chunk->step);
  chunk->reward.resize(header.steps);
  in.raw(chunk->reward.data(), header.steps * sizeof(float));
  return chunk;
}

Result<void> check_shape(const Chunk& chunk, const Signature& signature,
                         const DecodeLimits& limits) {
  const ChunkHeader& header = chunk.header;
  if (header.spec_hash != signature.spec_hash)
    return fail(ErrorCode::kInvalidArgument,
                describe(header) + " was made for an environment with spec hash " +
                    text(header.spec_hash) + ", not " + text(signature.spec_hash));
  if (header.steps == 0 || header.steps > limits.max_steps)
    return fail(ErrorCode::kInvalidArgument, describe(header) + " has " + text(header.steps) +
                                                 " steps; 1 to " + text(limits.max_steps) +
                                                 " are allowed");
  if (header.steps > std::numeric_limits<std::uint32_t>::max() - header.first_step)
    return fail(ErrorCode::kInvalidArgument, describe(header) + " counts steps beyond 32 bits");
  if (chunk.reward.size() != header.steps)
    return fail(ErrorCode::kInvalidArgument, describe(header) + " has " +
                                                 text(chunk.reward.size()) + " rewards for " +
                                                 text(header.steps) + " steps");
  if (auto fits =
          check_columns(chunk, signature.observation, chunk.observation, header.observation_rows());
      !fits)
    return fits;
  return check_columns(chunk, signature.step, chunk.step, header.steps);
}

}  // namespace troupe::replay
