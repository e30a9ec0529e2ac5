#include "actors/runtime/zmq_context.hpp"

namespace troupe::actors {

zmq::context_t& zmq_context() {
  // Never destroyed: at static destruction a socket that was forgotten would hang the process.
  static zmq::context_t* const context = new zmq::context_t(1);
  return *context;
}

void close_zmq_context() { zmq_context().close(); }

}  // namespace troupe::actors
