// Mutual TLS 1.3 over one non-blocking socket, with errors that say what is wrong in the user's
// words. Credentials may be shared by threads; a session belongs to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "actors/runtime/certificates.hpp"
#include "actors/runtime/openssl_support.hpp"

namespace troupe::actors {

// A host's bundle (certificates.hpp), loaded and checked.
class TlsCredentials {
 public:
  // `application`: what both sides must speak, "troupe/1"; another version is refused during the
  // handshake. Errors name the file: missing, readable by others, expired, of another authority.
  static Result<std::shared_ptr<const TlsCredentials>> load(const std::filesystem::path& bundle,
                                                            const std::string& application);

  const CertificateInfo& own() const { return own_; }
  const std::string& application() const { return application_; }
  SSL_CTX* context() const { return context_.get(); }

 private:
  TlsCredentials() = default;
  SslContextPointer context_;
  CertificateInfo own_;
  std::string application_, protocols_;  // as ALPN writes it
  static int choose_application(SSL*, const unsigned char** chosen, unsigned char* size,
                                const unsigned char* offered, unsigned offered_size, void* self);
  friend class TlsSession;
};

class TlsSession {
 public:
  enum class Step { kDone, kWantRead, kWantWrite, kClosed, kFailed };

  // The socket stays the caller's and must outlive the session. `host`: whom a client means, a name
  // or a numeric address, which the server's certificate must hold.
  static TlsSession server(std::shared_ptr<const TlsCredentials> credentials, int socket);
  static TlsSession client(std::shared_ptr<const TlsCredentials> credentials, int socket,
                           const std::string& host);

  // kClosed: the peer hung up. kFailed: error() says why.
  Step handshake();
  Step read(std::span<std::uint8_t> room, std::size_t& got);
  Step write(std::span<const std::uint8_t> bytes, std::size_t& sent);
  // Tells the peer that this is the end; does not wait.
  void close();

  // After the handshake.
  CertificateInfo peer() const;
  // A clause: "it is signed by another authority".
  const std::string& error() const { return error_; }

 private:
  TlsSession(std::shared_ptr<const TlsCredentials> credentials, int socket);
  Step step_of(int result);

  std::shared_ptr<const TlsCredentials> credentials_;
  SslPointer ssl_;
  std::unique_ptr<CertificateInfo> refused_;  // the peer's certificate that failed its check
  std::string host_, error_;
  bool greeted_ = false;  // the handshake is finished
};

}  // namespace troupe::actors
