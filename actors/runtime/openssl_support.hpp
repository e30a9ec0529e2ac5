// OpenSSL's objects with owners, and its errors as text. For the files of this folder that call
// OpenSSL.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace troupe::actors {

template <auto kFree>
struct OpenSslDeleter {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using BioPointer = std::unique_ptr<BIO, OpenSslDeleter<BIO_free_all>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, OpenSslDeleter<EVP_PKEY_free>>;
using X509Pointer = std::unique_ptr<X509, OpenSslDeleter<X509_free>>;
using SslContextPointer = std::unique_ptr<SSL_CTX, OpenSslDeleter<SSL_CTX_free>>;
using SslPointer = std::unique_ptr<SSL, OpenSslDeleter<SSL_free>>;

// Null for what is none; the reason stays in this thread's queue of errors.
inline X509Pointer certificate_of_pem(const std::string& pem) {
  const BioPointer bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return X509Pointer(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

inline KeyPointer key_of_pem(const std::string& pem) {
  const BioPointer bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return KeyPointer(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
}

// The first of this thread's errors; empties its queue.
inline std::string openssl_error() {
  const unsigned long code = ERR_peek_error();
  ERR_clear_error();
  char text[200] = "unknown";
  if (const char* reason = ERR_reason_error_string(code)) return reason;
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  return text;
}

}  // namespace troupe::actors
