// What stands behind the factories of channel.hpp: one pair of functions per implementation, and
// the checks they share. Only channel.cpp and the implementations include it.
#pragma once

#include <memory>
#include <string>

#include "actors/runtime/channel.hpp"

namespace troupe::actors {

Result<std::unique_ptr<ChannelServer>> open_inproc_server(const std::string& endpoint,
                                                          ChannelLimits limits);
Result<std::unique_ptr<ChannelClient>> open_inproc_client(const std::string& endpoint,
                                                          const std::string& peer_name,
                                                          ChannelLimits limits);
Result<std::unique_ptr<ChannelServer>> open_zmq_server(const std::string& endpoint,
                                                       ChannelLimits limits);
Result<std::unique_ptr<ChannelClient>> open_zmq_client(const std::string& endpoint,
                                                       const std::string& peer_name,
                                                       ChannelLimits limits);

// kInvalidArgument for a payload above the limit; an absent payload is an empty one.
Result<void> check_size(const ChannelMessage& message, const ChannelLimits& limits,
                        const std::string& receiver);

// The payload every receiver sees in place of an absent one.
Payload empty_payload();

}  // namespace troupe::actors
