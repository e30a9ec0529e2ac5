// Reads certificates; see certificates.hpp.
#include "actors/runtime/certificates.hpp"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "actors/runtime/openssl_support.hpp"
#include "actors/runtime/secret_files.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> texts(X509_NAME* name, int kind) {
  std::vector<std::string> found;
  for (int at = X509_NAME_get_index_by_NID(name, kind, -1); at >= 0;
       at = X509_NAME_get_index_by_NID(name, kind, at)) {
    const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
    found.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                       static_cast<std::size_t>(ASN1_STRING_length(text)));
  }
  return found;
}

std::string first(std::vector<std::string> list) { return list.empty() ? "" : list.front(); }

std::int64_t unix_seconds(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? ::timegm(&parts) : 0;
}

std::vector<std::string> addresses_of(X509* certificate) {
  std::vector<std::string> found;
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_DNS && name->type != GEN_IPADD) continue;
    const ASN1_STRING* text = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
    const unsigned char* data = ASN1_STRING_get0_data(text);
    const int size = ASN1_STRING_length(text);
    std::array<char, INET6_ADDRSTRLEN> numeric{};
    if (name->type == GEN_DNS)
      found.emplace_back(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
    else if (::inet_ntop(size == 4 ? AF_INET : AF_INET6, data, numeric.data(), numeric.size()))
      found.emplace_back(numeric.data());
  }
  GENERAL_NAMES_free(names);
  return found;
}

}  // namespace

const std::vector<std::string>& certificate_roles() {
  static const std::vector<std::string> roles{kCoordinatorRole, kWorkerRole, kControlRole,
                                              kWatchRole};
  return roles;
}

bool CertificateInfo::has_role(const std::string& role) const {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

Result<CertificateInfo> read_certificate(const fs::path& file) {
  const auto pem = read_public(file);
  if (!pem) return tl::unexpected(pem.error());
  const X509Pointer certificate = certificate_of_pem(*pem);
  ERR_clear_error();
  if (!certificate) return fail(ErrorCode::kCorrupt, file.string() + " holds no certificate");
  return describe_certificate(certificate.get());
}

CertificateInfo describe_certificate(X509* certificate) {
  CertificateInfo info;
  X509_NAME* subject = X509_get_subject_name(certificate);
  info.name = first(texts(subject, NID_commonName));
  info.authority = first(texts(X509_get_issuer_name(certificate), NID_commonName));
  info.roles = texts(subject, NID_organizationalUnitName);
  info.addresses = addresses_of(certificate);
  info.not_before = unix_seconds(X509_get0_notBefore(certificate));
  info.not_after = unix_seconds(X509_get0_notAfter(certificate));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  X509_digest(certificate, EVP_sha256(), digest.data(), &size);
  constexpr const char* kDigits = "0123456789abcdef";
  for (unsigned i = 0; i < size; ++i) {
    info.fingerprint += kDigits[digest[i] >> 4];
    info.fingerprint += kDigits[digest[i] & 15];
  }
  return info;
}

std::string utc_time(std::int64_t unix_seconds) {
  const auto time = static_cast<std::time_t>(unix_seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

}  // namespace troupe::actors
