// The messages of the replay service, as replay/PROTOCOL.md describes them for writers of clients:
// kinds, error codes, the 16 bytes before every payload, and the layout of a batch. Pure functions;
// any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/runtime/channel.hpp"
#include "replay/batch.hpp"

namespace troupe::actors {

constexpr std::uint32_t kServiceMagic = 0x53525254;  // "TRRS"
constexpr std::uint16_t kServiceVersion = 1;
constexpr std::size_t kServiceHeader = 16;  // u32 magic | u16 version | u16 zero | u64 request

// Kind bytes. A reply has the request's kind with kReplyBit, or is kServiceError.
enum class ServiceKind : std::uint8_t {
  kHello = 1,
  kTable = 2,
  kInsert = 3,
  kSample = 4,
  kPriorities = 5,
  kInfo = 6,
  kCheckpoint = 7,
  kEndWriter = 8,
  kMemory = 9,
};
constexpr std::uint8_t kReplyBit = 0x80;
constexpr std::uint8_t kServiceError = 0xff;

// Codes of error replies; never renumber.
enum class ServiceErrorCode : std::uint32_t {
  kInvalidArgument = 1,
  kNotFound = 2,
  kMalformed = 3,    // the bytes are not such a request
  kUnavailable = 4,  // not now: the service is full or stopping
  kTimeout = 5,      // the limiter held the samples back for as long as the request allowed
  kNotFinite = 6,    // NaN or infinity in a chunk
  kTooLarge = 7,
  kOverCredit = 8,  // more requests under way than the hello reply allows; nothing was done
  kMismatch = 9,    // the table exists with other columns
  kIo = 10,
  kVersion = 11,  // another version of this protocol
};

struct ServiceFailure {
  ServiceErrorCode code = ServiceErrorCode::kInvalidArgument;
  std::string message;
};
ServiceErrorCode service_code_of(ErrorCode code);

// Who asks, and under which of its numbers.
struct Request {
  std::string peer;
  std::uint64_t id = 0;
  ServiceKind kind = ServiceKind::kHello;
};

// Reads kind and header. Fails for anything that is no request of this version; `request.id` is
// then the number to answer with, 0 when there is none. `body` is what follows the header.
std::optional<ServiceFailure> read_request(const ChannelServer::Received& received,
                                           Request& request, std::span<const std::uint8_t>& body);

ChannelMessage error_reply(std::uint64_t request_id, const ServiceFailure& failure);
// With a JSON text as the body.
ChannelMessage json_reply(const Request& request, const nlohmann::json& body);
// With 64-bit words as the body.
ChannelMessage words_reply(const Request& request, std::span<const std::uint64_t> words);

// Where things lie in the payload of a sample reply of `items` rows: a head of 64 bytes (header,
// u32 items, u32 columns, zeros), then every column, keys and versions, each at a multiple of 64.
struct BatchLayout {
  std::vector<std::uint64_t> columns;  // offsets
  std::uint64_t keys = 0, versions = 0, bytes = 0;
};
constexpr std::size_t kBatchHead = 64;
BatchLayout batch_layout(const std::vector<Column>& columns, std::uint64_t items);

// Writes the head, keys and versions of a batch whose columns were gathered into `payload` already:
// the payload of the reply itself, or shared memory of the same layout.
void finish_batch(const Request& request, const BatchLayout& layout, const replay::Batch& batch,
                  std::span<std::uint8_t> payload);
// The reply to a sample whose batch lies in a slot of shared memory: the 64 bytes of the head.
ChannelMessage slot_reply(const Request& request, const BatchLayout& layout, std::uint64_t items);

}  // namespace troupe::actors
