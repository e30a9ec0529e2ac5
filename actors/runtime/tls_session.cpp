// See tls_session.hpp.
#include "actors/runtime/tls_session.hpp"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "actors/runtime/socket_bio.hpp"

namespace troupe::actors {
namespace {

bool is_numeric(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

// What is wrong with the peer's certificate; `host`: whom a client meant.
std::string certificate_fault(long verified, const CertificateInfo& peer, const std::string& host) {
  switch (verified) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "its certificate expired at " + utc_time(peer.not_after);
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "its certificate is valid only from " + utc_time(peer.not_before) +
             " on; compare the clocks";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: {
      std::string names;
      for (const std::string& name : peer.addresses) names += (names.empty() ? "" : ", ") + name;
      return "its certificate is for " + names + ", not for " + host +
             "; issue it with --address " + host;
    }
    default:
      return "its certificate is not of this cluster (signed by the authority '" + peer.authority +
             "': " + X509_verify_cert_error_string(verified) + ")";
  }
}

// What an alert or a broken record means; empty: nothing of the kind.
std::string protocol_fault(int reason, const std::string& application) {
  switch (reason) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      return "it does not know the authority that signed this host's certificate";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "it says that this host's certificate has expired";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "it asks for a certificate, and none was shown";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "it shows no certificate";
    case SSL_R_NO_APPLICATION_PROTOCOL:
    case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
      return "it runs another version of Troupe than " + application;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return "it speaks a version of TLS before 1.3";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_BAD_RECORD_TYPE:
      return "it does not speak TLS";
    default:
      return {};
  }
}

// Keeps what a certificate says that fails its check, for the message; decides nothing.
int note_refused(int passed, X509_STORE_CTX* check) {
  const auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
  X509* leaf = X509_STORE_CTX_get0_cert(check);
  if (passed == 0 && ssl != nullptr && leaf != nullptr)
    *static_cast<CertificateInfo*>(SSL_get_app_data(ssl)) = describe_certificate(leaf);
  return passed;
}

}  // namespace

TlsSession::TlsSession(std::shared_ptr<const TlsCredentials> credentials, int socket)
    : credentials_(std::move(credentials)),
      ssl_(SSL_new(credentials_->context())),
      refused_(std::make_unique<CertificateInfo>()) {
  BIO* bio = make_socket_bio(socket).release();
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), refused_.get());
  SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, note_refused);
}

TlsSession TlsSession::server(std::shared_ptr<const TlsCredentials> credentials, int socket) {
  TlsSession session(std::move(credentials), socket);
  SSL_set_accept_state(session.ssl_.get());
  return session;
}

TlsSession TlsSession::client(std::shared_ptr<const TlsCredentials> credentials, int socket,
                              const std::string& host) {
  TlsSession session(std::move(credentials), socket);
  SSL* ssl = session.ssl_.get();
  SSL_set_connect_state(ssl);
  session.host_ = host;
  if (is_numeric(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str());
  } else {
    SSL_set1_host(ssl, host.c_str());
    SSL_set_tlsext_host_name(ssl, host.c_str());
  }
  return session;
}

TlsSession::Step TlsSession::handshake() {
  ERR_clear_error();
  const Step step = step_of(SSL_do_handshake(ssl_.get()));
  if (step != Step::kDone) return step;
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &chosen, &size);
  if (size == 0) {
    error_ = "it does not say that it is Troupe";
    return Step::kFailed;
  }
  greeted_ = true;
  return Step::kDone;
}

TlsSession::Step TlsSession::read(std::span<std::uint8_t> room, std::size_t& got) {
  ERR_clear_error();
  return step_of(SSL_read_ex(ssl_.get(), room.data(), room.size(), &got));
}

TlsSession::Step TlsSession::write(std::span<const std::uint8_t> bytes, std::size_t& sent) {
  ERR_clear_error();
  return step_of(SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent));
}

void TlsSession::close() {
  ERR_clear_error();
  if (greeted_ && error_.empty()) (void)SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

CertificateInfo TlsSession::peer() const {
  X509* certificate = SSL_get0_peer_certificate(ssl_.get());
  return certificate ? describe_certificate(certificate) : CertificateInfo{};
}

TlsSession::Step TlsSession::step_of(int result) {
  const int number = errno;
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_NONE:
      return Step::kDone;
    case SSL_ERROR_WANT_READ:
      return Step::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Step::kWantWrite;
    case SSL_ERROR_ZERO_RETURN:
      if (greeted_) return Step::kClosed;
      error_ = "it hung up during the handshake";
      return Step::kFailed;
    case SSL_ERROR_SYSCALL:
      error_ = number != 0 ? std::strerror(number) : "the connection ended";
      return Step::kFailed;
    default:
      break;
  }
  const int reason = ERR_GET_REASON(ERR_peek_error());
  const long verified = SSL_get_verify_result(ssl_.get());
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK)
    error_ = certificate_fault(verified, *refused_, host_);
  else
    error_ = protocol_fault(reason, credentials_->application());
  if (error_.empty()) error_ = "the handshake failed (" + openssl_error() + ")";
  ERR_clear_error();
  return Step::kFailed;
}

}  // namespace troupe::actors
