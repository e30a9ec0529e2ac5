// Which messages the holder of a certificate may send into a run, by the names that CAF writes on
// the wire. The relay in front of the coordinator goes by them (runtime/tls_relay.hpp); within a
// host nobody asks.
#pragma once

#include "actors/runtime/basp_frames.hpp"

namespace troupe::actors {

// Everything of messages.hpp but what ends, scales or drains a run, and what CAF itself needs.
const MessageTypes& worker_message_types();
// Everything of messages.hpp.
const MessageTypes& control_message_types();

}  // namespace troupe::actors
