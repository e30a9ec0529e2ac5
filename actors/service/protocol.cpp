// Packs and unpacks the service's messages.
#include "actors/service/protocol.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "replay/bytes.hpp"

namespace troupe::actors {
namespace {

constexpr std::uint64_t kAlignment = 64;

constexpr std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void put_header(replay::ByteWriter& out, std::uint64_t request_id) {
  out.put(kServiceMagic);
  out.put(kServiceVersion);
  out.put(std::uint16_t{0});
  out.put(request_id);
}

ChannelMessage message_of(std::uint8_t kind, Bytes payload) {
  return {kind, std::make_shared<const Bytes>(std::move(payload))};
}

Bytes batch_head(const Request& request, const BatchLayout& layout, std::uint64_t items) {
  Bytes head;
  replay::ByteWriter out(head);
  put_header(out, request.id);
  out.put(static_cast<std::uint32_t>(items));
  out.put(static_cast<std::uint32_t>(layout.columns.size()));
  head.resize(kBatchHead);
  return head;
}

std::uint8_t reply_kind(const Request& request) {
  return static_cast<std::uint8_t>(static_cast<std::uint8_t>(request.kind) | kReplyBit);
}

}  // namespace

ServiceErrorCode service_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return ServiceErrorCode::kNotFound;
    case ErrorCode::kCorrupt:
      return ServiceErrorCode::kMalformed;
    case ErrorCode::kIo:
      return ServiceErrorCode::kIo;
    case ErrorCode::kUnavailable:
    case ErrorCode::kInternal:
      return ServiceErrorCode::kUnavailable;
    case ErrorCode::kTimeout:
      return ServiceErrorCode::kTimeout;
    case ErrorCode::kNotFinite:
      return ServiceErrorCode::kNotFinite;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kInvalidEpisode:
      break;
  }
  return ServiceErrorCode::kInvalidArgument;
}

std::optional<ServiceFailure> read_request(const ChannelServer::Received& received,
                                           Request& request, std::span<const std::uint8_t>& body) {
  request.peer = received.peer;
  request.id = 0;
  const std::span<const std::uint8_t> payload = *received.message.payload;
  replay::ByteReader in(payload);
  const auto magic = in.take<std::uint32_t>();
  const auto version = in.take<std::uint16_t>();
  in.take<std::uint16_t>();
  const auto id = in.take<std::uint64_t>();
  if (!in.ok() || magic != kServiceMagic)
    return ServiceFailure{ServiceErrorCode::kMalformed,
                          "the message has no header of the replay service"};
  request.id = id;
  if (version != kServiceVersion)
    return ServiceFailure{ServiceErrorCode::kVersion,
                          "the request has protocol version " + std::to_string(version) +
                              "; this service speaks version " + std::to_string(kServiceVersion)};
  const std::uint8_t kind = received.message.kind;
  if (kind < static_cast<std::uint8_t>(ServiceKind::kHello) ||
      kind > static_cast<std::uint8_t>(ServiceKind::kMemory))
    return ServiceFailure{ServiceErrorCode::kMalformed,
                          "there is no request of kind " + std::to_string(kind)};
  request.kind = static_cast<ServiceKind>(kind);
  body = payload.subspan(kServiceHeader);
  return std::nullopt;
}

ChannelMessage error_reply(std::uint64_t request_id, const ServiceFailure& failure) {
  Bytes payload;
  replay::ByteWriter out(payload);
  put_header(out, request_id);
  out.put(static_cast<std::uint32_t>(failure.code));
  out.bytes(failure.message.data(), failure.message.size());
  return message_of(kServiceError, std::move(payload));
}

ChannelMessage json_reply(const Request& request, const nlohmann::json& body) {
  const std::string text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  Bytes payload;
  replay::ByteWriter out(payload);
  put_header(out, request.id);
  out.bytes(text.data(), text.size());
  return message_of(reply_kind(request), std::move(payload));
}

ChannelMessage words_reply(const Request& request, std::span<const std::uint64_t> words) {
  Bytes payload;
  replay::ByteWriter out(payload);
  put_header(out, request.id);
  out.bytes(words.data(), words.size_bytes());
  return message_of(reply_kind(request), std::move(payload));
}

BatchLayout batch_layout(const std::vector<Column>& columns, std::uint64_t items) {
  BatchLayout layout;
  std::uint64_t at = kBatchHead;
  for (const Column& column : columns) {
    layout.columns.push_back(at);
    at += aligned(column.bytes() * items);
  }
  layout.keys = at;
  at += aligned(sizeof(replay::ItemKey) * items);
  layout.versions = at;
  layout.bytes = at + sizeof(std::uint64_t) * items;
  return layout;
}

void finish_batch(const Request& request, const BatchLayout& layout, const replay::Batch& batch,
                  std::span<std::uint8_t> payload) {
  const Bytes head = batch_head(request, layout, static_cast<std::uint64_t>(batch.items()));
  std::memcpy(payload.data(), head.data(), head.size());
  std::memcpy(payload.data() + layout.keys, batch.keys.data(),
              batch.keys.size() * sizeof(replay::ItemKey));
  std::memcpy(payload.data() + layout.versions, batch.versions.data(),
              batch.versions.size() * sizeof(std::uint64_t));
}

ChannelMessage slot_reply(const Request& request, const BatchLayout& layout, std::uint64_t items) {
  return message_of(reply_kind(request), batch_head(request, layout, items));
}

}  // namespace troupe::actors
