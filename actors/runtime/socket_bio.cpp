// See socket_bio.hpp.
#include "actors/runtime/socket_bio.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

namespace troupe::actors {
namespace {

int socket_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

// What OpenSSL wants to know of a call that moved nothing.
bool must_wait() { return errno == EAGAIN || errno == EINTR; }

int write_bytes(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(socket_of(bio), data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && must_wait()) BIO_set_retry_write(bio);
  *written = sent > 0 ? static_cast<std::size_t>(sent) : 0;
  return sent > 0 ? 1 : 0;
}

int read_bytes(BIO* bio, char* data, std::size_t size, std::size_t* read) {
  BIO_clear_retry_flags(bio);
  errno = 0;
  const ssize_t got = ::recv(socket_of(bio), data, size, MSG_DONTWAIT);
  if (got < 0 && must_wait()) BIO_set_retry_read(bio);
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  *read = got > 0 ? static_cast<std::size_t>(got) : 0;
  return got > 0 ? 1 : 0;
}

long control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

const BIO_METHOD* method() {
  static const BIO_METHOD* const made = [] {
    BIO_METHOD* fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write_ex(fresh, write_bytes);
    BIO_meth_set_read_ex(fresh, read_bytes);
    BIO_meth_set_ctrl(fresh, control);
    return fresh;
  }();
  return made;
}

}  // namespace

BioPointer make_socket_bio(int socket) {
  BioPointer bio(BIO_new(method()));
  BIO_set_data(bio.get(), reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
  BIO_set_init(bio.get(), 1);
  return bio;
}

}  // namespace troupe::actors
