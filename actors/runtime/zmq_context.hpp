// The one ZeroMQ context of the process: its I/O thread moves the bytes of every channel and of
// telemetry. Created at first use; safe from any thread.
#pragma once

#include <zmq.hpp>

namespace troupe::actors {

// Lives until close_zmq_context() or the process ends; sockets must not be static objects.
zmq::context_t& zmq_context();

// Waits until what closed sockets still hold is sent, at most their linger time. Call it once, late
// in main and after every socket is closed: with one still open it would wait for ever.
void close_zmq_context();

}  // namespace troupe::actors
