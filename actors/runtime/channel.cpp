// Picks the implementation by the endpoint's scheme.
#include "actors/runtime/channel.hpp"

#include "actors/runtime/channel_implementations.hpp"

namespace troupe::actors {
namespace {

constexpr std::size_t kLongestPeerName = 255;  // ZeroMQ's limit for routing ids

bool is_inproc(const std::string& endpoint) { return endpoint.starts_with("inproc://"); }

Result<void> check_endpoint(const std::string& endpoint, const ChannelLimits& limits) {
  const auto scheme_end = endpoint.find("://");
  const std::string scheme = endpoint.substr(0, scheme_end);
  if (scheme_end == std::string::npos || (scheme != "inproc" && scheme != "ipc" && scheme != "tcp"))
    return fail(
        ErrorCode::kInvalidArgument,
        "channel endpoint '" + endpoint + "' must be inproc://NAME, ipc://PATH or tcp://HOST:PORT");
  if (scheme_end + 3 == endpoint.size())
    return fail(ErrorCode::kInvalidArgument,
                "channel endpoint '" + endpoint + "' names no address");
  if (limits.high_water_mark < 1 || limits.max_message_bytes < 1)
    return fail(ErrorCode::kInvalidArgument,
                "channel " + endpoint + " needs limits of at least one message and one byte");
  return {};
}

}  // namespace

Result<std::unique_ptr<ChannelServer>> open_channel_server(const std::string& endpoint,
                                                           ChannelLimits limits) {
  if (auto checked = check_endpoint(endpoint, limits); !checked)
    return tl::unexpected(checked.error());
  return is_inproc(endpoint) ? open_inproc_server(endpoint, limits)
                             : open_zmq_server(endpoint, limits);
}

Result<std::unique_ptr<ChannelClient>> open_channel_client(const std::string& endpoint,
                                                           const std::string& peer_name,
                                                           ChannelLimits limits) {
  if (auto checked = check_endpoint(endpoint, limits); !checked)
    return tl::unexpected(checked.error());
  // ZeroMQ reserves names that begin with a zero byte.
  if (peer_name.empty() || peer_name.size() > kLongestPeerName || peer_name.front() == '\0')
    return fail(ErrorCode::kInvalidArgument,
                "channel " + endpoint + ": a peer's name has 1 to 255 characters");
  return is_inproc(endpoint) ? open_inproc_client(endpoint, peer_name, limits)
                             : open_zmq_client(endpoint, peer_name, limits);
}

Result<void> check_size(const ChannelMessage& message, const ChannelLimits& limits,
                        const std::string& receiver) {
  if (message.payload && message.payload->size() > limits.max_message_bytes)
    return fail(ErrorCode::kInvalidArgument, "message to " + receiver + " has " +
                                                 std::to_string(message.payload->size()) +
                                                 " bytes; the channel carries at most " +
                                                 std::to_string(limits.max_message_bytes));
  return {};
}

Payload empty_payload() {
  static const auto empty = std::make_shared<const Bytes>();
  return empty;
}

}  // namespace troupe::actors
