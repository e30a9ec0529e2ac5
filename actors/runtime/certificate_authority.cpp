// Makes authorities and issues certificates; see certificates.hpp.
#include "actors/runtime/certificates.hpp"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <set>

#include "actors/runtime/curve_keys.hpp"
#include "actors/runtime/openssl_support.hpp"
#include "actors/runtime/secret_files.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr const char* kWorkerCurve = "worker.curve";
constexpr const char* kWatchCurve = "watch.curve";
constexpr std::size_t kLongestName = 63;

tl::unexpected<Error> failed(const std::string& what) {
  return fail(ErrorCode::kInternal, "cannot " + what + ": " + openssl_error());
}

bool only(const std::string& text, const char* others) {
  return std::all_of(text.begin(), text.end(), [others](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(others).find(c) != std::string_view::npos;
  });
}

Result<void> check_name(const std::string& what, const std::string& name) {
  if (!name.empty() && name.size() <= kLongestName && name.front() != '.' && name.front() != '-' &&
      only(name, ".-_"))
    return {};
  return fail(ErrorCode::kInvalidArgument, what + " '" + name +
                                               "' must have 1 to 63 letters, digits, dots, dashes "
                                               "or underscores and begin with none of the signs");
}

bool is_numeric(const std::string& address) {
  std::array<unsigned char, 16> bytes{};
  return ::inet_pton(AF_INET, address.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1;
}

Result<void> check(const CertificateRequest& request) {
  if (auto named = check_name("the host's name", request.name); !named) return named;
  for (const std::string& address : request.addresses)
    if (!is_numeric(address)) {
      const bool any_host = address.starts_with("*.");  // of a domain
      if (auto named = check_name("the address", any_host ? address.substr(2) : address); !named)
        return named;
    }
  if (request.roles.empty())
    return fail(ErrorCode::kInvalidArgument, "a certificate without a role is good for nothing");
  for (const std::string& role : request.roles) {
    const auto& known = certificate_roles();
    if (std::find(known.begin(), known.end(), role) == known.end())
      return fail(ErrorCode::kInvalidArgument,
                  "there is no role '" + role + "'; choose of coordinator, worker, control, watch");
  }
  if (request.lasts <= seconds(0))
    return fail(ErrorCode::kInvalidArgument, "a certificate must last at least a second");
  return {};
}

void add_text(X509_NAME* name, int kind, const std::string& text) {
  X509_NAME_add_entry_by_NID(name, kind, MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(text.data()),
                             static_cast<int>(text.size()), -1, 0);
}

bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

// A certificate with serial number, key and time, still without names and signature.
X509Pointer new_certificate(EVP_PKEY* key, seconds begins, seconds lasts) {
  X509Pointer certificate(X509_new());
  std::array<unsigned char, 16> serial{};
  if (!certificate || RAND_bytes(serial.data(), serial.size()) != 1) return nullptr;
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) | 0x40);  // positive, of full length
  BIGNUM* number = BN_bin2bn(serial.data(), serial.size(), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get()));
  BN_free(number);
  X509_set_version(certificate.get(), X509_VERSION_3);
  const std::time_t now = std::time(nullptr);
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), now + begins.count());
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), now + begins.count() + lasts.count());
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

std::string contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
  const BioPointer bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(bio.get(), certificate);
  return contents(bio.get());
}

std::string pem_of(EVP_PKEY* key) {
  const BioPointer bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return contents(bio.get());
}

struct Authority {
  X509Pointer certificate;
  KeyPointer key;
  std::string pem;
};

Result<Authority> load_authority(const fs::path& folder) {
  auto pem = read_public(folder / kAuthorityFile);
  if (!pem && pem.error().code == ErrorCode::kNotFound)
    return fail(ErrorCode::kNotFound, "there is no authority in " + folder.string() +
                                          "; make one: troupe certificates init " +
                                          folder.string());
  if (!pem) return tl::unexpected(pem.error());
  auto secret = read_secret(folder / kAuthorityKey);
  if (!secret) return tl::unexpected(secret.error());
  Authority authority{certificate_of_pem(*pem), key_of_pem(*secret), *pem};
  ERR_clear_error();
  if (!authority.certificate || !authority.key ||
      X509_check_private_key(authority.certificate.get(), authority.key.get()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::kCorrupt, "authority.pem and authority.key in " + folder.string() +
                                         " do not belong together");
  }
  return authority;
}

std::string alternative_names(const CertificateRequest& request) {
  std::set<std::string> names(request.addresses.begin(), request.addresses.end());
  if (names.empty()) names.insert(request.name);
  std::string list;
  for (const std::string& name : names)
    list += (list.empty() ? "" : ",") + std::string(is_numeric(name) ? "IP:" : "DNS:") + name;
  return list;
}

X509Pointer sign_request(const Authority& authority, const CertificateRequest& request,
                         EVP_PKEY* key) {
  X509Pointer made = new_certificate(key, request.begins, request.lasts);
  if (!made) return nullptr;
  X509_NAME* subject = X509_get_subject_name(made.get());
  add_text(subject, NID_commonName, request.name);
  for (const std::string& role : request.roles) add_text(subject, NID_organizationalUnitName, role);
  X509* issuer = authority.certificate.get();
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer));
  const bool complete =
      add_extension(made.get(), issuer, NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(made.get(), issuer, NID_key_usage, "critical,digitalSignature") &&
      add_extension(made.get(), issuer, NID_ext_key_usage, "serverAuth,clientAuth") &&
      add_extension(made.get(), issuer, NID_subject_key_identifier, "hash") &&
      add_extension(made.get(), issuer, NID_authority_key_identifier, "keyid:always") &&
      add_extension(made.get(), issuer, NID_subject_alt_name, alternative_names(request));
  if (!complete || X509_sign(made.get(), authority.key.get(), nullptr) == 0) return nullptr;
  return made;
}

// The first that fails; the others are not tried.
template <class... Steps>
Result<void> in_order(Steps&&... steps) {
  Result<void> result;
  (void)((result = steps(), result.has_value()) && ...);
  return result;
}

}  // namespace

Result<void> init_authority(const fs::path& folder, const std::string& cluster, seconds lasts) {
  if (auto named = check_name("the cluster's name", cluster); !named) return named;
  const KeyPointer key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return failed("make a key");
  X509Pointer made = new_certificate(key.get(), std::chrono::hours(-1), lasts);
  if (!made) return failed("make a certificate");
  add_text(X509_get_subject_name(made.get()), NID_organizationName, "Troupe");
  add_text(X509_get_subject_name(made.get()), NID_commonName, cluster);
  X509_set_issuer_name(made.get(), X509_get_subject_name(made.get()));
  X509* own = made.get();
  if (!add_extension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(own, own, NID_subject_key_identifier, "hash") ||
      X509_sign(own, key.get(), nullptr) == 0)
    return failed("sign the authority's certificate");
  const CurvePair worker = new_curve_pair(), watch = new_curve_pair();
  // The key first: where one lies already, nothing else is touched.
  return in_order([&] { return make_private_directory(folder); },
                  [&] { return write_secret(folder / kAuthorityKey, pem_of(key.get())); },
                  [&] { return write_secret(folder / kWorkerCurve, worker.secret_key + "\n"); },
                  [&] { return write_secret(folder / kWatchCurve, watch.secret_key + "\n"); },
                  [&] {
                    return write_public(
                        folder / kCurvePublicFile,
                        "worker " + worker.public_key + "\nwatch " + watch.public_key + "\n");
                  },
                  [&] { return write_public(folder / kAuthorityFile, pem_of(own)); });
}

Result<void> issue_certificate(const fs::path& folder, const CertificateRequest& request,
                               const fs::path& bundle) {
  if (auto valid = check(request); !valid) return valid;
  auto authority = load_authority(folder);
  if (!authority) return tl::unexpected(authority.error());
  const bool works = std::any_of(request.roles.begin(), request.roles.end(), [](const auto& role) {
    return role == kCoordinatorRole || role == kWorkerRole;
  });
  const auto curve_key = read_secret(folder / (works ? kWorkerCurve : kWatchCurve));
  const auto curve_public = read_public(folder / kCurvePublicFile);
  if (!curve_key) return tl::unexpected(curve_key.error());
  if (!curve_public) return tl::unexpected(curve_public.error());
  const KeyPointer key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return failed("make a key");
  const X509Pointer made = sign_request(*authority, request, key.get());
  if (!made) return failed("issue a certificate for " + request.name);
  return in_order([&] { return make_private_directory(bundle); },
                  [&] { return write_secret(bundle / kCertificateKey, pem_of(key.get())); },
                  [&] { return write_secret(bundle / kCurveKey, *curve_key); },
                  [&] { return write_public(bundle / kCurvePublicFile, *curve_public); },
                  [&] { return write_public(bundle / kAuthorityFile, authority->pem); },
                  [&] { return write_public(bundle / kCertificateFile, pem_of(made.get())); });
}

}  // namespace troupe::actors
