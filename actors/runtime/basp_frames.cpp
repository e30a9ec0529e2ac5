// See basp_frames.hpp. Layout of a header, big-endian: operation u8, two bytes unused, flags u8,
// payload length u32, operation data u64, source u64, destination u64. A message's payload begins
// with the number of forwarding actors (one byte 0 without any), a type id u16 of 0, and the names
// of its types as a string: "@<>+troupe::actors::Hello+@strong_actor_ptr".
#include "actors/runtime/basp_frames.hpp"

#include <algorithm>
#include <string_view>

namespace troupe::actors {
namespace {

constexpr std::size_t kHeaderBytes = 32, kNodeBytes = 32;
constexpr std::uint8_t kServerHandshake = 0, kClientHandshake = 1, kMessage = 2, kMonitor = 4,
                       kDown = 5, kHeartbeat = 6;
constexpr std::uint8_t kNamedReceiver = 1;
constexpr std::uint64_t kMostControl = 8192;  // payload of what is no message
constexpr std::size_t kMostTypes = 4096;      // characters
constexpr std::string_view kTypesBegin = "@<>";

tl::unexpected<Error> wrong(const std::string& what) { return fail(ErrorCode::kCorrupt, what); }

std::uint8_t byte_at(const std::string& bytes, std::size_t at) {
  return static_cast<std::uint8_t>(bytes[at]);
}

}  // namespace

Result<void> BaspFrames::follow(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    if (part_ == Part::kRest) {
      const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
      left_ -= skipped;
      bytes = bytes.subspan(skipped);
    } else {
      const std::size_t taken = std::min(wanted_ - seen_.size(), bytes.size());
      seen_.append(reinterpret_cast<const char*>(bytes.data()), taken);
      bytes = bytes.subspan(taken);
      if (seen_.size() < wanted_) continue;
      if (part_ == Part::kHeader) {
        if (auto checked = check_header(); !checked) return checked;
      } else {
        auto more = check_prefix();
        if (!more) return tl::unexpected(more.error());
        if (*more > left_) return wrong("a message is cut short");
        wanted_ += *more;
        left_ -= *more;
        if (*more == 0) part_ = Part::kRest;
      }
    }
    if (part_ != Part::kRest || left_ > 0) continue;
    part_ = Part::kHeader;
    seen_.clear();
    wanted_ = kHeaderBytes;
  }
  return {};
}

Result<void> BaspFrames::check_header() {
  operation_ = byte_at(seen_, 0);
  named_receiver_ = (byte_at(seen_, 3) & kNamedReceiver) != 0;
  std::uint64_t length = 0;
  for (std::size_t i = 4; i < 8; ++i) length = length << 8 | byte_at(seen_, i);
  const std::uint8_t handshake = rules_.to_server ? kClientHandshake : kServerHandshake;
  if (operation_ != handshake && operation_ != kMessage && operation_ != kMonitor &&
      operation_ != kDown && operation_ != kHeartbeat)
    return wrong("a frame has the operation " + std::to_string(operation_) +
                 ", which no node of a run sends");
  if (node_.empty() && operation_ != handshake) return wrong("it does not begin with a handshake");
  const std::uint64_t most = operation_ == kMessage ? rules_.most_payload : kMostControl;
  if (length > most)
    return wrong("a frame announces " + std::to_string(length) + " bytes; at most " +
                 std::to_string(most) + " are allowed");
  seen_.clear();
  wanted_ = operation_ == kHeartbeat ? 0 : operation_ == kMessage ? 4 : kNodeBytes;
  if (wanted_ > length) return wrong("a frame is cut short");
  left_ = length - wanted_;
  part_ = wanted_ == 0 ? Part::kRest : Part::kPrefix;
  return {};
}

Result<std::size_t> BaspFrames::check_prefix() {
  if (operation_ != kMessage) return check_source();
  if (seen_[0] != 0) return wrong("a message was forwarded by another node");
  if (seen_[1] != 0 || seen_[2] != 0) return wrong("a message does not name its types");
  // The length of the names, 7 bits a byte, lowest first.
  std::size_t size = 0;
  for (std::size_t at = 3; at < 6; ++at) {
    if (at == seen_.size()) return 1;
    size |= static_cast<std::size_t>(byte_at(seen_, at) & 0x7f) << 7 * (at - 3);
    if ((byte_at(seen_, at) & 0x80) != 0) continue;
    if (size > kMostTypes) break;
    if (seen_.size() < at + 1 + size) return at + 1 + size - seen_.size();
    if (auto checked = check_types(std::string_view(seen_).substr(at + 1, size)); !checked)
      return tl::unexpected(checked.error());
    return 0;
  }
  return wrong("the names of a message's types are too long");
}

Result<void> BaspFrames::check_types(std::string_view types) const {
  if (!types.starts_with(kTypesBegin)) return wrong("a message does not name its types");
  types.remove_prefix(kTypesBegin.size());
  if (types == "+@atom" && rules_.types && !named_receiver_)
    return wrong("a message is a bare atom, which nodes only send to themselves");
  while (!types.empty()) {
    types.remove_prefix(1);  // the '+'
    const std::string_view type = types.substr(0, types.find('+'));
    types.remove_prefix(type.size());
    if (type == "@exit" || type == "@down") return wrong("a message would end an actor");
    if (rules_.types && !rules_.types->contains(type))
      return wrong("a message of type " + std::string(type) +
                   " is not allowed to the roles of its certificate");
  }
  return {};
}

// Handshakes say which node speaks; later frames must come from the same one.
Result<std::size_t> BaspFrames::check_source() {
  if (operation_ == kMonitor || operation_ == kDown) {
    if (seen_ != node_) return wrong("a frame speaks in the name of another node");
  } else if (node_.empty()) {
    node_ = seen_;
  } else if (seen_ != node_) {
    return wrong("a second handshake names another node");
  }
  return 0;
}

}  // namespace troupe::actors
