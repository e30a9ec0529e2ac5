// Loads a host's bundle for tls_session.hpp.
#include <ctime>

#include "actors/runtime/secret_files.hpp"
#include "actors/runtime/tls_session.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

struct Bundle {
  X509Pointer authority, certificate;
  KeyPointer key;
};

Result<Bundle> read_bundle(const fs::path& folder) {
  auto secret = read_secret(folder / kCertificateKey);
  if (!secret && secret.error().code == ErrorCode::kNotFound)
    return fail(ErrorCode::kNotFound,
                folder.string() + " holds no certificate of a host (" + kCertificateKey +
                    "); make one with troupe certificates issue and copy its folder here");
  if (!secret) return tl::unexpected(secret.error());
  const auto certificate = read_public(folder / kCertificateFile);
  if (!certificate) return tl::unexpected(certificate.error());
  const auto authority = read_public(folder / kAuthorityFile);
  if (!authority) return tl::unexpected(authority.error());
  Bundle bundle{certificate_of_pem(*authority), certificate_of_pem(*certificate),
                key_of_pem(*secret)};
  ERR_clear_error();
  const auto corrupt = [&](const std::string& what) {
    ERR_clear_error();
    return fail(ErrorCode::kCorrupt, what + " in " + folder.string());
  };
  if (!bundle.authority) return corrupt(std::string(kAuthorityFile) + " is no certificate");
  if (!bundle.certificate) return corrupt(std::string(kCertificateFile) + " is no certificate");
  if (!bundle.key) return corrupt(std::string(kCertificateKey) + " is no key");
  if (X509_check_private_key(bundle.certificate.get(), bundle.key.get()) != 1)
    return corrupt("certificate.pem and certificate.key do not belong together");
  if (X509_verify(bundle.certificate.get(), X509_get0_pubkey(bundle.authority.get())) != 1)
    return corrupt("certificate.pem is not signed by authority.pem");
  return bundle;
}

Result<void> check_time(const CertificateInfo& info, const fs::path& file) {
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  if (now > info.not_after)
    return fail(ErrorCode::kInvalidArgument, "the certificate " + file.string() + " expired at " +
                                                 utc_time(info.not_after) +
                                                 "; issue the host a new one");
  if (now < info.not_before)
    return fail(ErrorCode::kInvalidArgument,
                "the certificate " + file.string() + " is valid from " + utc_time(info.not_before) +
                    " on, and this host's clock says " + utc_time(now));
  return {};
}

}  // namespace

int TlsCredentials::choose_application(SSL*, const unsigned char** chosen, unsigned char* size,
                                       const unsigned char* offered, unsigned offered_size,
                                       void* self) {
  const std::string& protocols = static_cast<const TlsCredentials*>(self)->protocols_;
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, size, reinterpret_cast<const unsigned char*>(protocols.data()),
                            static_cast<unsigned>(protocols.size()), offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

Result<std::shared_ptr<const TlsCredentials>> TlsCredentials::load(const fs::path& folder,
                                                                   const std::string& application) {
  auto bundle = read_bundle(folder);
  if (!bundle) return tl::unexpected(bundle.error());
  std::shared_ptr<TlsCredentials> made(new TlsCredentials);
  made->own_ = describe_certificate(bundle->certificate.get());
  if (auto valid = check_time(made->own_, folder / kCertificateFile); !valid)
    return tl::unexpected(valid.error());
  made->application_ = application;
  made->protocols_ = static_cast<char>(application.size()) + application;

  made->context_.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* context = made->context_.get();
  const bool ready =
      context != nullptr && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
      SSL_CTX_use_certificate(context, bundle->certificate.get()) == 1 &&
      SSL_CTX_use_PrivateKey(context, bundle->key.get()) == 1 &&
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context), bundle->authority.get()) == 1 &&
      SSL_CTX_set_alpn_protos(context,
                              reinterpret_cast<const unsigned char*>(made->protocols_.data()),
                              static_cast<unsigned>(made->protocols_.size())) == 0;
  if (!ready)
    return fail(ErrorCode::kInternal,
                "OpenSSL refuses the bundle in " + folder.string() + ": " + openssl_error());
  SSL_CTX_set_alpn_select_cb(context, choose_application, made.get());
  // Nothing is resumed: every connection shows its certificate.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // A stranger's certificate chain is read up to this.
  SSL_CTX_set_max_cert_list(context, 16 * 1024);
  return made;
}

}  // namespace troupe::actors
