// OpenSSL's way to a socket, without the SIGPIPE that its own raises when the peer is gone.
#pragma once

#include "actors/runtime/openssl_support.hpp"

namespace troupe::actors {

// The socket stays the caller's and must outlive it.
BioPointer make_socket_bio(int socket);

}  // namespace troupe::actors
